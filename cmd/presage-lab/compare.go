package main

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

type compareCommand struct {
	Scenario string    `required:"" placeholder:"NAME|FILE" help:"Scenario to play: a name of presage-lab scenarios, or a file."`
	Policies string    `default:"predictive,weighted,round-robin" placeholder:"A,B" help:"Policies; the first is compared with the others. Default ${default}. Knobs: predictive:stall=0.3,slo=0."`
	Seeds    int       `default:"8" help:"Number of seeds; 8 or more for a verdict."`
	Seed     uint64    `default:"1" help:"First seed; the others follow it."`
	Load     []float64 `default:"1" help:"Multiples of the scenario's rate."`
	Sweep    bool      `help:"All loads of the scenario."`
	Trace    string    `placeholder:"FILE" help:"Trace to replay, for scenarios that need one."`
	Workers  int       `default:"0" help:"Runs at a time."`
	JSON     bool      `name:"json" help:"Print one JSON object on the last line."`
}

// Run plays the grid and prints a table per load.
func (c *compareCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	s, err := workload.Open(c.Scenario)
	if err != nil {
		return command.Usage(err)
	}
	if s.NeedsTrace() && c.Trace == "" {
		return command.Usage(fmt.Errorf("--trace: scenario %s replays a trace; name its file", s.Name))
	}
	registry := serve.Policies()
	policies := policyList(c.Policies)
	for _, p := range policies {
		if _, err := registry.New(p, router.Params{}); err != nil {
			return command.Usage(fmt.Errorf("--policies: %w", err))
		}
	}
	table, err := engine.Builtin()
	if err != nil {
		return err
	}
	loads := c.Load
	if c.Sweep {
		loads = s.Loads
	}
	workers := c.Workers
	if workers <= 0 {
		workers = runtime.NumCPU()
	}
	study := &compare.Study{
		Arena:    arena(s, table, c.Trace, registry),
		Policies: policies, Loads: loads, Seeds: seedsFrom(c.Seed, c.Seeds), Workers: workers,
		Progress: func(done, total int) { t.Progress(time.Now(), fmt.Sprintf("run %d of %d", done, total)) },
	}
	g, err := study.Run(ctx)
	if g != nil {
		c.print(t, g)
	}
	return err
}

// policyList splits a list of policies at its commas, except those between knobs: a part that sets
// something, but names no policy, belongs to the one before.
func policyList(text string) []string {
	var list []string
	for _, part := range strings.Split(text, ",") {
		if n := len(list); n > 0 && strings.Contains(part, "=") && !strings.Contains(part, ":") {
			list[n-1] += "," + part
			continue
		}
		list = append(list, part)
	}
	return list
}

// arena is where commands compare policies. Trees are left out: they do not enter the ranking, and
// fitting them takes most of the time of a run.
func arena(s *workload.Scenario, table engine.Table, trace string, registry router.Registry) *compare.Arena {
	return &compare.Arena{
		Scenario: s, Table: table, Trace: trace, Policies: registry,
		Learner: predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}},
	}
}

func (c *compareCommand) print(t *terminal.Terminal, g *compare.Grid) {
	attained := func(r *compare.Result) float64 { return 100 * r.Attainment }
	for l, load := range g.Study.Loads {
		t.Result("")
		t.Result("%s at %g times its rate, %d seeds", g.Study.Arena.Scenario.Name, load, len(g.Study.Seeds))
		w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "policy\tattained %\tdifference, 95 %\tTTFT mean s\tp50\tp90\tp99\tITL ms\tE2E s\thit %\tload CV\t")
		for p, name := range g.Study.Policies {
			mean := func(m compare.Metric) float64 { return stat.Mean(g.Values(p, l, m)) }
			diff := ""
			if p > 0 {
				if d, err := g.Paired(0, p, l, attained); err == nil {
					diff = fmt.Sprintf("%+.1f (%+.1f to %+.1f)", d.Mean, d.Low, d.High)
				}
			}
			fmt.Fprintf(w, "%s\t%.1f\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f\t%.2f\t%.1f\t%.2f\t\n", name, mean(attained), diff,
				mean(func(r *compare.Result) float64 { return r.TTFT.Mean }), mean(func(r *compare.Result) float64 { return r.TTFT.P50 }),
				mean(func(r *compare.Result) float64 { return r.TTFT.P90 }), mean(func(r *compare.Result) float64 { return r.TTFT.P99 }),
				1e3*mean(func(r *compare.Result) float64 { return r.ITL.Mean }), mean(func(r *compare.Result) float64 { return r.E2E.Mean }),
				100*mean(func(r *compare.Result) float64 { return r.Hit }), mean(func(r *compare.Result) float64 { return r.LoadCV }))
		}
		_ = w.Flush()
		printClasses(t, g, l)
	}
}

// printClasses prints what each SLO class attained, where there are several.
func printClasses(t *terminal.Terminal, g *compare.Grid, l int) {
	classes := map[string]bool{}
	for p := range g.Study.Policies {
		for _, r := range g.Results[p][l] {
			if r != nil {
				for name := range r.Classes {
					classes[name] = true
				}
			}
		}
	}
	if len(classes) < 2 {
		return
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tclass\tattained %\tdifference, 95 %\t")
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		of := func(r *compare.Result) float64 { return 100 * r.Classes[name].Attainment }
		for p, policy := range g.Study.Policies {
			diff := ""
			if p > 0 {
				if d, err := g.Paired(0, p, l, of); err == nil {
					diff = fmt.Sprintf("%+.1f (%+.1f to %+.1f)", d.Mean, d.Low, d.High)
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%.1f\t%s\t\n", policy, name, stat.Mean(g.Values(p, l, of)), diff)
		}
	}
	_ = w.Flush()
}
