package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/training/evaluate"
)

type evalCommand struct {
	Files   []string `arg:"" name:"file" help:"Recorded requests, in any format with times of answers; gzip is seen through."`
	Without []string `enum:"trees,offsets,shrinkage,steps,bands,drift" placeholder:"PART" help:"Also evaluate without each of these parts of the learner: trees, offsets, shrinkage, steps, bands, drift."`
	Foils   bool     `negatable:"" default:"true" help:"Also judge batch-fitted models: linear, one tree, boosted trees."`
	Strata  bool     `help:"Print the parts by load, hits, state of the endpoint and drift."`
	Jobs    int      `help:"Parts evaluated at once; default: one per CPU."`
	JSON    bool     `name:"json" help:"Print one JSON object on the last line."`
}

// report is the JSON of the command.
type report struct {
	Files     []*evaluate.File            `json:"files"`
	Partial   bool                        `json:"partial,omitempty"` // interrupted
	Units     []standing                  `json:"units,omitempty"`
	Ablations map[string][]*evaluate.File `json:"ablations,omitempty"`
}

// job is one evaluation: a part, with the whole learner (variant 0) or without something.
type job struct{ variant, part int }

// Run evaluates the learner on each file, as if it had served those requests.
func (c *evalCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	var parts []*evaluate.Part
	for _, path := range c.Files {
		p, err := evaluate.Load(path)
		if err != nil {
			return command.Usage(err)
		}
		parts = append(parts, p...)
	}
	results, err := c.evaluate(ctx, t, parts)
	if err != nil && ctx.Err() == nil {
		return err
	}
	r := report{Files: results[0], Partial: err != nil, Units: standings(results[0])}
	if r.Partial {
		t.Result("Interrupted: %d of %d parts.", len(r.Files), len(parts))
	}
	printEval(t, r.Files, c.Strata)
	printStandings(t, r.Units)
	if len(c.Without) > 0 {
		r.Ablations = map[string][]*evaluate.File{}
		for i, name := range c.Without {
			r.Ablations[name] = results[i+1]
		}
		printAblations(t, r.Files, c.Without, r.Ablations)
	}
	if c.JSON {
		if err := t.JSON(r); err != nil {
			return err
		}
	}
	return err
}

// evaluate returns the results by variant and part: all of them, or with an error those parts that
// were finished in every variant.
func (c *evalCommand) evaluate(ctx context.Context, t *terminal.Terminal, parts []*evaluate.Part) ([][]*evaluate.File, error) {
	results := make([][]*evaluate.File, 1+len(c.Without))
	var jobs []job
	for v := range results {
		results[v] = make([]*evaluate.File, len(parts))
		for p := range parts {
			jobs = append(jobs, job{v, p})
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue, done := make(chan job), make(chan struct{})
	var wg sync.WaitGroup
	workers := c.Jobs
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			for j := range queue {
				f, err := parts[j.part].Judge(ctx, c.options(j.variant))
				if err != nil {
					cancel(err)
				}
				results[j.variant][j.part] = f
				done <- struct{}{}
			}
		})
	}
	go func() {
		for _, j := range jobs {
			queue <- j
		}
		close(queue)
		wg.Wait()
		close(done)
	}()
	n := 0
	for range done {
		n++
		t.Progress(time.Now(), fmt.Sprintf("eval  %d of %d parts", n, len(jobs)))
	}
	err := context.Cause(ctx)
	if err != nil {
		results = finished(results)
	}
	return results, err
}

// finished keeps the parts that have a result in every variant.
func finished(results [][]*evaluate.File) [][]*evaluate.File {
	kept := make([][]*evaluate.File, len(results))
	for p := range results[0] {
		if slices.ContainsFunc(results, func(v []*evaluate.File) bool { return v[p] == nil }) {
			continue
		}
		for v := range results {
			kept[v] = append(kept[v], results[v][p])
		}
	}
	return kept
}

func (c *evalCommand) options(variant int) evaluate.Options {
	o := evaluate.Options{Foils: c.Foils && variant == 0}
	if variant > 0 {
		o.Predictor.Without = without(c.Without[variant-1])
	}
	return o
}

// without switches one part of the learner off.
func without(part string) predictor.Without {
	return predictor.Without{
		Trees: part == "trees", Offsets: part == "offsets", Shrinkage: part == "shrinkage", Steps: part == "steps", Bands: part == "bands", Drift: part == "drift",
	}
}
