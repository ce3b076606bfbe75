package cluster

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/engine"
)

// validateBlocks compares the memory formula with the KV blocks that engines allocated.
func validateBlocks(dir string, _ engine.Table) ([]Check, error) {
	rows, _, err := datasets.Load[datasets.Step](filepath.Join(dir, "vllm-steps", "steps.csv.gz"))
	if err != nil {
		return nil, err
	}
	var checks []Check
	for _, model := range []string{"codellama-34b", "llama-2-70b"} {
		shape, ok := engine.ShapeOf(model)
		if !ok {
			return nil, fmt.Errorf("%s: no shape", model)
		}
		n, worst := 0, 0.0
		for i := range rows {
			r := &rows[i]
			if !strings.Contains(r.Run, model) || r.Blocks < 1 {
				continue
			}
			blocks, err := engine.KVBlocks("H100", &shape, r.TP, "", blockTokens)
			if err != nil {
				return nil, err
			}
			n++
			worst = max(worst, math.Abs(float64(blocks)/float64(r.Blocks)-1))
		}
		checks = append(checks, check("kv blocks H100 "+model, n, worst, 0.02))
	}
	return checks, nil
}

// Fitted is an engine fitted to measured iterations.
type Fitted struct {
	Run, Model string
	Coefs      engine.Coefs
	Passes     int     // fitted
	Held       int     // held out
	Median     float64 // relative error on those held out
	P90        float64
}

// Calibrate fits an engine to each run of a file of iterations with enough of them: every other
// pass is fitted, the rest is held out. The first passes of a run, in which engines warm up, are dropped.
func Calibrate(file string) ([]Fitted, error) {
	rows, _, err := datasets.Load[datasets.Pass](file)
	if err != nil {
		return nil, err
	}
	var out []Fitted
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Run == rows[0].Run {
			n++
		}
		run := rows[:n]
		rows = rows[n:]
		if len(run) < fitPasses {
			continue
		}
		f, err := fitRun(run[warmPasses:])
		if err != nil {
			return nil, fmt.Errorf("%s: run %s: %w", file, run[0].Run, err)
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no run has the %d passes that a fit needs", file, fitPasses)
	}
	return out, nil
}

const (
	fitPasses  = 4000 // of a run, for a fit that can be judged
	warmPasses = 50
)

func fitRun(run []datasets.Pass) (Fitted, error) {
	var part [2][]engine.Pass
	for i := range run {
		r := &run[i]
		part[i%2] = append(part[i%2], engine.Pass{
			Prefills: r.PrefillRequests, PrefillTokens: r.PrefillTokens, PrefillKV: r.PrefillKV, PrefillVar: r.PrefillVar,
			Decodes: r.DecodeRequests, DecodeKV: r.DecodeKV, Time: r.Latency * 1e6,
		})
	}
	f := Fitted{Run: run[0].Run, Model: run[0].Model, Passes: len(part[0]), Held: len(part[1])}
	var err error
	if f.Coefs, err = engine.Fit(part[0]); err != nil {
		return f, err
	}
	var errs []float64
	for i := range part[1] {
		p := &part[1][i]
		errs = append(errs, math.Abs(f.Coefs.PassTime(p)/p.Time-1))
	}
	slices.Sort(errs)
	f.Median, f.P90 = errs[len(errs)/2], errs[len(errs)*9/10]
	return f, nil
}

// validateSteps judges fits of step times to measured iterations.
func validateSteps(dir string, _ engine.Table) ([]Check, error) {
	fits, err := Calibrate(filepath.Join(dir, "vllm-fpm-aiconfigurator", "passes.csv.gz"))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(fits, func(a, b Fitted) int { return cmp.Compare(a.Run, b.Run) })
	var checks []Check
	for _, f := range fits {
		limit := 0.1
		if f.Model == "Qwen3-32B" { // the dense one
			limit = 0.06
		}
		checks = append(checks, check("step time "+f.Model+", "+f.Run+", median error", f.Held, f.Median, limit))
	}
	return checks, nil
}
