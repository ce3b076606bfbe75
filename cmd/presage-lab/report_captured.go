package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/oracle"
	"github.com/presage-router/presage/lab/report"
)

// inWords is how reports call the references.
var inWords = map[string]string{
	oracle.ByClairvoyant: "clairvoyant", oracle.ByHindsight: "best in hindsight", oracle.ByBound: "upper bound",
}

// upper are the studies of references that a report is to have; nil where the command names none.
func (c *compareCommand) upper() ([]*oracle.Study, error) {
	if c.Upper.References == "" {
		return nil, nil
	}
	return c.Upper.studies(c)
}

// capture holds the policies against references at the headline load, where the command names some.
func capture(ctx context.Context, t *terminal.Terminal, studies []*oracle.Study, m *compare.Match, o *compare.Outcome, out *report.Comparison) error {
	if o.Partial || o.Seeds == 0 {
		return nil
	}
	for _, s := range studies {
		if s.Arena.Scenario.Name != o.Scenario || s.Load != o.Load {
			continue
		}
		s.Progress = func(done, total int) {
			t.Progress(time.Now(), fmt.Sprintf("report: references, seed %d of %d", done, total))
		}
		r, err := s.Run(ctx)
		if r == nil || err != nil {
			return err
		}
		var refused []string
		out.Captured, refused = capturedOf(r, s.References)
		out.Refusals = append(out.Refusals, refused...)
		if s.Arena.Scenario.Duration != m.Arena.Scenario.Duration {
			out.Method.Notes = append(out.Method.Notes, "Captured shares are of a scenario cut short, which a search can get through.")
		}
		return nil
	}
	return nil
}

// capturedOf sets all policies against one reference: what a search found, else the clairvoyant, else
// the bound. It also says why shares are missing.
func capturedOf(r *oracle.Result, references []string) (*report.Captured, []string) {
	top := references[0]
	for _, name := range []string{oracle.ByBound, oracle.ByClairvoyant, oracle.ByHindsight} {
		if slices.Contains(references, name) {
			top = name
		}
	}
	out := &report.Captured{Baseline: "round-robin", Reference: inWords[top], Possible: report.Unknown(), Load: report.Value(r.Load)}
	var refused []string
	room := 0.0
	for _, c := range r.Captured {
		if c.Reference != top {
			continue
		}
		room = c.Room
		out.Possible = report.Value(c.Room)
		bar := report.Bar{Name: c.Policy, Share: report.Interval{Mean: report.Unknown(), Low: report.Unknown(), High: report.Unknown()}}
		if c.Share != nil {
			bar.Share = report.Interval{Mean: report.Value(*c.Share), Low: report.Value(c.CI95[0]), High: report.Value(c.CI95[1])}
		}
		out.Bars = append(out.Bars, bar)
		if c.Refused != "" && c.Room >= oracle.LeastRoom {
			refused = append(refused, fmt.Sprintf("Refused: the share that %s captures: %s.", c.Policy, c.Refused))
		}
	}
	slices.SortStableFunc(out.Bars, func(a, b report.Bar) int { return order(a.Share.Mean, b.Share.Mean) })
	for _, name := range []string{oracle.ByClairvoyant, oracle.ByHindsight, oracle.ByBound} {
		if slices.Contains(references, name) && room > 0 {
			share := (r.Attainment[name] - r.Attainment["round-robin"]) / room
			out.Bars = append(out.Bars, report.Bar{Name: inWords[name], Share: report.Point(share), Foresees: true})
		}
	}
	return out, refused
}

// order puts what is not known first.
func order(a, b report.Value) int {
	switch {
	case a == b || !a.Known() && !b.Known():
		return 0
	case !a.Known() || a < b:
		return -1
	}
	return 1
}
