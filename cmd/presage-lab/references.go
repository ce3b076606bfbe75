package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/oracle"
	"github.com/presage-router/presage/router"
)

// labPolicies are those that the lab can play: the service's, and those that know what no router can.
func labPolicies() router.Registry {
	r := serve.Policies()
	maps.Copy(r, oracle.Recipes())
	return r
}

// references is the part of compare that holds policies against what could be attained.
type references struct {
	References string `placeholder:"A,B" help:"Instead, shares captured of what these gain: clairvoyant, bound, hindsight."`
	Short      int    `default:"0" placeholder:"N" help:"Requests then played; 0: 400 for hindsight, else all."`
	Replays    int    `default:"400" help:"Assignments hindsight tries per seed."`
}

const shortTrace = 400 // requests

// run plays every scenario and load, one after the other. Interrupted, it prints what was finished.
func (r *references) run(ctx context.Context, c *compareCommand, t *terminal.Terminal) error {
	studies, err := r.studies(c)
	if err != nil {
		return command.Usage(err)
	}
	var results []*oracle.Result
	for i, s := range studies {
		s.Progress = func(done, total int) {
			t.Progress(time.Now(), fmt.Sprintf("references %s  seed %d of %d, table %d of %d", s.Arena.Scenario.Name, done, total, i+1, len(studies)))
		}
		var got *oracle.Result
		if got, err = s.Run(ctx); got != nil {
			results = append(results, got)
			printCaptured(t, got)
		}
		if err != nil {
			break
		}
	}
	if c.JSON {
		if err := t.JSON(map[string]any{"tables": results}); err != nil {
			return err
		}
	}
	return err
}

func (r *references) studies(c *compareCommand) ([]*oracle.Study, error) {
	names := strings.Split(r.References, ",")
	known := []string{oracle.ByClairvoyant, oracle.ByHindsight, oracle.ByBound}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("--references: %q unknown; all: %s", n, strings.Join(known, ", "))
		}
	}
	if err := within("replays", r.Replays, 1, 1_000_000); err != nil {
		return nil, err
	}
	if err := within("short", r.Short, 0, 1_000_000); err != nil {
		return nil, err
	}
	matches, _, err := c.matches()
	if err != nil {
		return nil, err
	}
	short := r.Short
	if short == 0 && slices.Contains(names, oracle.ByHindsight) {
		short = shortTrace
	}
	var studies []*oracle.Study
	for _, m := range matches {
		for _, load := range m.Loads {
			a := m.Arena
			if short > 0 {
				if a, err = oracle.Short(a, load, m.Seeds[0], short, 0.25); err != nil {
					return nil, fmt.Errorf("--short: %w", err)
				}
			}
			studies = append(studies, &oracle.Study{
				Arena: a, Load: load, Seeds: m.Seeds, Policies: m.Policies, References: names, Replays: r.Replays, Workers: m.Workers,
			})
		}
	}
	return studies, nil
}

func printCaptured(t *terminal.Terminal, r *oracle.Result) {
	t.Result("")
	t.Result("%s at %g times its rate, %d seeds: captured = (policy - round robin) / (reference - round robin)", r.Scenario, r.Load, r.Seeds)
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "policy\tattained %\treference\tattained %\tcaptured %\t95 %\tis the reference")
	for _, c := range r.Captured {
		share, interval, is := "-", c.Refused, ""
		if c.Share != nil {
			share, interval = fmt.Sprintf("%.0f", 100**c.Share), fmt.Sprintf("%.0f to %.0f", 100*c.CI95[0], 100*c.CI95[1])
		}
		if r.Reference[c.Policy] == c.Reference {
			is = "yes"
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%.1f\t%s\t%s\t%s\n", c.Policy, r.Attainment[c.Policy], c.Reference, r.Attainment[c.Reference], share, interval, is)
	}
	_ = w.Flush()
}
