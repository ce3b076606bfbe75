package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/sensitivity"
)

// ablation is the part of compare that plays one policy with one thing wrong at a time.
type ablation struct {
	Ablate     bool   `help:"Instead, what one thing wrong at a time costs."`
	Dimensions string `default:"all" placeholder:"A,B" help:"What is wrong, as error=0.1/0.3,labels."`
	Markdown   bool   `help:"With --ablate, tables in Markdown."`
}

// run plays every scenario and load, one after the other. Interrupted, it prints what was finished.
func (a *ablation) run(ctx context.Context, c *compareCommand, t *terminal.Terminal) error {
	matches, _, err := c.matches()
	if err != nil {
		return command.Usage(err)
	}
	choices, err := sensitivity.Choose(a.Dimensions)
	if err != nil {
		return command.Usage(fmt.Errorf("--dimensions: %w", err))
	}
	var studies []*sensitivity.Study
	for _, m := range matches {
		for _, load := range m.Loads {
			s := &sensitivity.Study{Arena: m.Arena, Policy: m.Policies[0], Load: load, Seeds: m.Seeds, Choices: choices, Workers: m.Workers}
			if err := s.Check(); err != nil {
				return command.Usage(fmt.Errorf("--dimensions: %w", err))
			}
			studies = append(studies, s)
		}
	}
	var tables []*sensitivity.Table
	for i, s := range studies {
		s.Progress = func(done, total int) {
			t.Progress(time.Now(), fmt.Sprintf("ablate %s  %d of %d runs, table %d of %d", s.Arena.Scenario.Name, done, total, i+1, len(studies)))
		}
		var table *sensitivity.Table
		table, err = s.Run(ctx)
		tables = append(tables, table)
		a.print(t, table)
		if err != nil {
			break
		}
	}
	if c.JSON {
		if err := t.JSON(map[string]any{"tables": tables}); err != nil {
			return err
		}
	}
	return err
}

func (a *ablation) print(t *terminal.Terminal, table *sensitivity.Table) {
	if len(table.Rows) == 0 {
		return
	}
	t.Result("")
	t.Result("%s on %s at %g times its rate, %d seeds: what one thing that is wrong costs", table.Policy, table.Scenario, table.Load, table.Rows[0].Seeds)
	if a.Markdown {
		t.Result("\n%s", table.Markdown())
		return
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "wrong\tby\tattained %\tdifference, 95 %\tTTFT mean ms\tp90\tITL ms\tE2E s\thit %\t")
	for i := range table.Rows {
		r := &table.Rows[i]
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%s\t%.0f\t%.0f\t%.1f\t%.2f\t%.0f\t\n",
			r.What(), r.Setting, r.Attainment, r.Difference(), r.TTFT, r.TTFT90, r.ITL, r.E2E/1e3, 100*r.Hit)
	}
	_ = w.Flush()
}
