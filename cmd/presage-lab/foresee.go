package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/foresight"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/predictive"
)

type foreseeCommand struct {
	Scenario string   `enum:"upgrade,experts" default:"upgrade" help:"Scenario: upgrade (three kinds of hardware, a new engine version at half time) or experts (engines whose step times do not have the form of the predictor's law)."`
	Seeds    int      `default:"2" help:"Number of seeds."`
	Seed     uint64   `default:"1" help:"First seed; the others follow it."`
	Load     float64  `default:"1" help:"Multiple of the scenario's rate."`
	Every    int      `default:"20" help:"Decisions between two at which all engines are cloned."`
	Ablate   bool     `help:"Also learners that lack one part each."`
	Without  []string `placeholder:"PART" help:"Only these parts: ledger, shrinkage, offsets, conformal, trees, gaps, drift, cancels."`
	JSON     bool     `name:"json" help:"Print one JSON object on the last line."`
}

// Run plays the seeds one after the other and prints their means.
func (c *foreseeCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if err := within("seeds", c.Seeds, 1, 1000); err != nil {
		return err
	}
	if err := within("every", c.Every, 1, 1<<20); err != nil {
		return err
	}
	if !(c.Load > 0 && c.Load <= 100) {
		return command.Usage(fmt.Errorf("--load: %v is not within 0 and 100", c.Load))
	}
	s, err := foresight.Scenario(c.Scenario)
	if err != nil {
		return command.Usage(fmt.Errorf("--scenario: %w", err))
	}
	parts := c.Without
	if c.Ablate {
		parts = nil
		for _, v := range foresight.Variants()[1:] {
			parts = append(parts, v.Name)
		}
	}
	variants, err := foresight.Choose(parts)
	if err != nil {
		return command.Usage(fmt.Errorf("--without: %w", err))
	}
	table, err := engine.Builtin()
	if err != nil {
		return err
	}
	study := &foresight.Study{
		Scenario: s, Table: table, Variants: variants, Load: c.Load, Every: c.Every, Spoiled: 0.05,
		Learner: predictor.Options{RefitAfter: time.Minute},
		Policy: func(seed uint64) (router.Policy, error) {
			return predictive.Recipes().New("predictive", router.Params{Seed: seed})
		},
	}
	if c.Scenario == "experts" {
		study.Noise = 0.03
	}
	var results []*foresight.Result
	for i := range c.Seeds {
		t.Progress(time.Now(), fmt.Sprintf("seed %d of %d", i+1, c.Seeds))
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := study.Run(c.Seed + uint64(i))
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	c.print(t, variants, results)
	if c.JSON {
		return t.JSON(struct {
			Scenario string              `json:"scenario"`
			Runs     []*foresight.Result `json:"runs"`
		}{c.Scenario, results})
	}
	return nil
}

func (c *foreseeCommand) print(t *terminal.Terminal, variants []foresight.Variant, results []*foresight.Result) {
	r := results[0]
	t.Result("%s: %d requests, %d cancelled, %d decisions foreseen, %d seeds", c.Scenario, r.Requests, r.Cancelled, r.Foreseen, len(results))
	t.Result("differences between endpoints of what is ranked by, against the exact engines")
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "without\tTTFT within\trobust\tacross\trobust\teffect mean\tmax\tITL within\trobust\tacross\trobust\teffect mean\tmax\tlived: within\tacross\ttop-1 %\tregret ms\tregret %\t")
	for _, v := range variants {
		of := func(f func(*foresight.Verdict) float64) float64 { return mean(results, v.Name, f) }
		row := []float64{
			of(func(v *foresight.Verdict) float64 { return v.TTFT.Within.Sigma }),
			of(func(v *foresight.Verdict) float64 { return v.TTFT.Within.Robust }),
			of(func(v *foresight.Verdict) float64 { return v.TTFT.Across.Sigma }),
			of(func(v *foresight.Verdict) float64 { return v.TTFT.Across.Robust }),
			of(func(v *foresight.Verdict) float64 { return v.TTFT.Effect.Mean }),
			of(func(v *foresight.Verdict) float64 { return v.TTFT.Effect.Max }),
			of(func(v *foresight.Verdict) float64 { return v.ITL.Within.Sigma }),
			of(func(v *foresight.Verdict) float64 { return v.ITL.Within.Robust }),
			of(func(v *foresight.Verdict) float64 { return v.ITL.Across.Sigma }),
			of(func(v *foresight.Verdict) float64 { return v.ITL.Across.Robust }),
			of(func(v *foresight.Verdict) float64 { return v.ITL.Effect.Mean }),
			of(func(v *foresight.Verdict) float64 { return v.ITL.Effect.Max }),
			of(func(v *foresight.Verdict) float64 { return v.LivedITL.Within.Sigma }),
			of(func(v *foresight.Verdict) float64 { return v.LivedITL.Across.Sigma }),
		}
		fmt.Fprintf(w, "%s\t", name(v.Name))
		for _, x := range row {
			fmt.Fprintf(w, "%.3f\t", x)
		}
		fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t\n",
			100*of(func(v *foresight.Verdict) float64 { return v.Choice.Top1 }),
			of(func(v *foresight.Verdict) float64 { return v.Choice.RegretMS }),
			100*of(func(v *foresight.Verdict) float64 { return v.Choice.Regret }))
	}
	_ = w.Flush()
	t.Result("")
	t.Result("forecasts of the requests that were routed (log errors); P90: share of times within it")
	w = tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "without\tTTFT median\tmean\tP90\tworst 500\tITL median\tmean\tP90\tworst 500\talarms\t")
	for _, v := range variants {
		of := func(f func(*foresight.Verdict) float64) float64 { return mean(results, v.Name, f) }
		fmt.Fprintf(w, "%s\t", name(v.Name))
		for k := range 2 {
			fmt.Fprintf(w, "%.3f\t%.3f\t%.3f\t%.3f\t",
				of(func(v *foresight.Verdict) float64 { return v.Labels[k].Error }), of(func(v *foresight.Verdict) float64 { return v.Labels[k].Mean }),
				of(func(v *foresight.Verdict) float64 { return v.Labels[k].Covered }), of(func(v *foresight.Verdict) float64 { return v.Labels[k].Coverage }))
		}
		fmt.Fprintf(w, "%.0f\t\n", of(func(v *foresight.Verdict) float64 { return float64(v.Alarms) }))
	}
	_ = w.Flush()
	c.recoveries(t, variants, results)
}

// recoveries prints how each class recovers from the change of its engines, seed by seed.
func (c *foreseeCommand) recoveries(t *terminal.Terminal, variants []foresight.Variant, results []*foresight.Result) {
	if len(results[0].Variants[foresight.Whole].Drift) == 0 {
		return
	}
	t.Result("")
	t.Result("mean log error of TTFT after the change, in multiples of that before")
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "without\tclass\tseed\tbefore\tlabels 1-100\t201-300\t901-1000\tworst against whole\t")
	for _, v := range variants {
		for _, r := range results {
			for _, class := range []string{"H100", "A100", "L40S"} {
				if d, ok := r.Variants[v.Name].Drift[class]; ok {
					fmt.Fprintf(w, "%s\t%s\t%d\t%.3f\t%s\t%s\t%s\t%.2f\t\n", name(v.Name), class, r.Seed, d.Old, ratio(d.First), ratio(d.At300), ratio(d.At1k), d.Worst)
				}
			}
		}
	}
	_ = w.Flush()
}

// ratio is empty where there were too few labels.
func ratio(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}

func name(variant string) string {
	if variant == foresight.Whole {
		return "-"
	}
	return variant
}

func mean(results []*foresight.Result, variant string, of func(*foresight.Verdict) float64) float64 {
	x := make([]float64, len(results))
	for i, r := range results {
		x[i] = of(r.Variants[variant])
	}
	return stat.Mean(x)
}
