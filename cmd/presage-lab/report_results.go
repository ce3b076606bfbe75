package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/report"
)

// bestOf is what the best of the others is called where it is not one policy.
const bestOf = "the best other policy"

// reportCells writes the report of all scenarios, up to the knee of each.
func (c *resultsCommand) reportCells(t *terminal.Terminal, all []compare.Cell) error {
	if c.Report == "" {
		return nil
	}
	return c.write(t, c.Report, c.comparisonOf(compare.Sustained(all), all))
}

func (c *resultsCommand) comparisonOf(cells, all []compare.Cell) *report.Comparison {
	var scenarios []string
	by := map[string][]compare.Cell{}
	for i := range cells {
		name := cells[i].Scenario
		if by[name] == nil {
			scenarios = append(scenarios, name)
		}
		by[name] = append(by[name], cells[i])
	}
	out := &report.Comparison{
		Scope: report.Scope{Scenario: fmt.Sprintf("each of %d", len(scenarios)), Seeds: c.Seeds}, Ours: c.Ours, Primary: report.Attainment,
		Method: method(seedsFrom(c.Seed, c.Seeds)),
	}
	if len(scenarios) == 1 {
		out.Scope.Scenario = scenarios[0]
	}
	out.Method.Notes = []string{
		fmt.Sprintf("Of each scenario the loads count that lie below the first at which %s attains less than 90\u202f%%: %d of %d.", c.Ours, len(cells), len(all)),
		fmt.Sprintf("The best other policy of each load was chosen on seeds of their own: %d, from %d on.", c.Choose, c.Chosen),
		"Refused and unfinished requests count as missed.",
	}
	if len(cells) == 0 {
		return out
	}
	best := func(c *compare.Cell) *compare.Difference { return &c.Diff }
	out.Policies = append(out.Policies, meanPolicy(c.Ours, tuningOf(c.Ours), cells, func(c *compare.Cell) *compare.Figures { return &c.Ours }))
	rivals := []string{bestOf}
	pooled := []*compare.Comparison{}
	bases := []float64{}
	add := func(name, tuning string, of func(*compare.Cell) *compare.Difference, figures func(*compare.Cell) *compare.Figures) {
		d, base := compare.Pooled(cells, of)
		pooled, bases = append(pooled, &d), append(bases, base)
		out.Policies = append(out.Policies, meanPolicy(name, tuning, cells, figures))
	}
	add(bestOf, "published defaults; chosen load by load", best, func(c *compare.Cell) *compare.Figures { return &c.Theirs })
	for _, name := range slices.Concat(plain, orElse(c.Also, beside)) {
		if name == c.Ours {
			continue
		}
		rivals = append(rivals, name)
		add(name, tuningOf(name), func(c *compare.Cell) *compare.Difference {
			if r, ok := c.Also[name]; ok {
				return &r.Diff
			}
			return nil
		}, func(c *compare.Cell) *compare.Figures {
			if r, ok := c.Also[name]; ok {
				return &r.Figures
			}
			return nil
		})
	}
	compare.AdjustPooled(pooled)
	for i, d := range pooled {
		out.Versus = append(out.Versus, report.Versus{Other: rivals[i], Primary: differenceOf(d, 1, bases[i])})
	}
	out.Against = bestOf
	out.Scenarios = byScenario(scenarios, by, best)
	out.Control = worstControl(all)
	return out
}

// byScenario are the differences to the best other policy, scenario by scenario, adjusted together.
func byScenario(scenarios []string, by map[string][]compare.Cell, best func(*compare.Cell) *compare.Difference) []report.Slice {
	pooled := make([]*compare.Comparison, len(scenarios))
	bases := make([]float64, len(scenarios))
	for i, name := range scenarios {
		d, base := compare.Pooled(by[name], best)
		pooled[i], bases[i] = &d, base
	}
	compare.AdjustPooled(pooled)
	var out []report.Slice
	for i, name := range scenarios {
		rival := by[name][0].Best
		for k := range by[name] {
			if by[name][k].Best != rival {
				rival = bestOf
			}
		}
		out = append(out, report.Slice{By: "scenario", Name: name, Other: rival, Difference: differenceOf(pooled[i], 1, bases[i])})
	}
	return out
}

// meanPolicy is a row of the table: means over cells.
func meanPolicy(name, tuning string, cells []compare.Cell, of func(*compare.Cell) *compare.Figures) report.Policy {
	var met, ttft, itl, hit []float64
	for i := range cells {
		if f := of(&cells[i]); f != nil {
			met, hit = append(met, f.Attainment/100), append(hit, f.Hit)
			if f.TTFT90 > 0 { // 0: nothing was answered
				ttft, itl = append(ttft, f.TTFT90/1e3), append(itl, f.ITL/1e3)
			}
		}
	}
	return report.Policy{
		Name: name, Tuning: tuning, Sustained: report.Point(math.NaN()), Rate: report.Unknown(), LoadCV: report.Unknown(),
		Attained: report.Value(stat.Mean(met)), TTFT90: report.Value(stat.Mean(ttft)), ITL: report.Value(stat.Mean(itl)), Cached: report.Value(stat.Mean(hit)),
	}
}

// worstControl is the control that is least behind; nil where none was played.
func worstControl(cells []compare.Cell) *report.Control {
	var worst *compare.Control
	for i := range cells {
		if k := cells[i].Control; k != nil && (worst == nil || !k.Lost && worst.Lost || k.Lost == worst.Lost && k.Diff < worst.Diff) {
			worst = k
		}
	}
	if worst == nil {
		return nil
	}
	return controlOf(worst)
}

// controlOf is the control as reports have it: behind by points, with an interval where it can be trusted.
func controlOf(k *compare.Control) *report.Control {
	behind := report.Point(100 * k.Diff)
	if low := k.CI95[0]; !(k.Lost && !(low > 0)) { // lost by five points, on seeds too few for an interval
		behind.Low, behind.High = report.Value(100*low), report.Value(100*k.CI95[1])
	}
	return &report.Control{Policy: k.Policy, Against: k.Against, Load: report.Value(k.Load), Behind: behind}
}
