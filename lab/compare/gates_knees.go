package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/presage-router/presage/internal/stat"
)

// KneeGates judges sustained loads over scenarios; those without a knee are left out.
func KneeGates(cells []KneeCell) []Gate {
	var best, plain []Ratio
	worst, where := math.Inf(1), ""
	for i := range cells {
		c := &cells[i]
		if c.NoKnee != "" {
			continue
		}
		if r, ok := c.Also["round-robin"]; ok && r.Seeds > 0 {
			plain = append(plain, r)
		}
		r := c.Ratio
		switch {
		case r.Lost > 0: // ours has no knee where the best has one
			worst, where = 0, fmt.Sprintf("%s: below 90 %% at the lowest load on %d seeds", c.Scenario, r.Lost)
			continue
		case r.Seeds == 0:
			continue
		}
		best = append(best, r)
		if r.Ratio < worst {
			worst, where = r.Ratio, fmt.Sprintf("%s against %s, %.3f to %.3f", c.Scenario, r.B, r.CI95[0], r.CI95[1])
		}
	}
	if len(best) == 0 && where == "" {
		return nil
	}
	mean, n := GeometricMean(best)
	gates := []Gate{
		gate("sustained load, geometric mean against the best baseline of each workload, times", mean, 1, fmt.Sprintf("%d workloads; median %.3f", n, medianRatio(best))),
		gate("no workload's sustained load below the best baseline's, times", worst, 0.98, where),
	}
	if mean, n := GeometricMean(plain); n > 0 {
		gates = append(gates, gate("sustained load, geometric mean against round-robin, times", mean, 1.5, fmt.Sprintf("%d workloads, those left out where its knee is 0", n)))
	}
	return gates
}

func medianRatio(ratios []Ratio) float64 {
	x := make([]float64, len(ratios))
	for i := range ratios {
		x[i] = ratios[i].Ratio
	}
	return stat.Median(x)
}

// ControlGates judges whether the control lost on every scenario; without a control there is none.
func ControlGates(cells []Cell) []Gate {
	worst, where, n := math.Inf(1), "", 0
	for i := range cells {
		c := cells[i].Control
		if c == nil {
			continue
		}
		n++
		low := 100 * c.CI95[0]
		if math.IsNaN(low) { // one seed has no interval
			low = 100 * c.Diff
		}
		if low < worst {
			worst, where = low, fmt.Sprintf("%s at %g, %s attains %.1f %%", cells[i].Scenario, c.Load, c.Policy, 100*c.Attainment)
		}
	}
	if n == 0 {
		return nil
	}
	g := gate("the control loses at the highest load of every scenario (lower end of its worst interval, points)", worst, 0, where)
	g.OK = !slices.ContainsFunc(cells, func(c Cell) bool { return c.Control != nil && !c.Control.Lost })
	return []Gate{g}
}
