package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/presage-router/presage/internal/stat"
)

// Gate is one promise, and whether the cells keep it.
type Gate struct {
	Name string  `json:"name"`
	Got  float64 `json:"got"`
	Want float64 `json:"want"` // at least
	Note string  `json:"note,omitempty"`
	OK   bool    `json:"ok"`
}

// Sustained keeps the cells up to the knee of ours: those where it attains at least 90 %, and none
// beyond the first load of its scenario where it does not.
func Sustained(cells []Cell) []Cell {
	var kept []Cell
	over := map[string]bool{}
	for _, c := range cells {
		if c.Ours.Attainment < 90 {
			over[c.Scenario] = true
		}
		if !over[c.Scenario] {
			kept = append(kept, c)
		}
	}
	return kept
}

// Gates judges cells up to the knee.
func Gates(cells []Cell) []Gate {
	if len(cells) == 0 {
		return nil
	}
	level := 1 - 0.05/float64(len(cells))
	worst, where := math.Inf(1), ""
	byScenario := map[string][]float64{}
	var all []float64
	for i := range cells {
		c := &cells[i]
		all = append(all, c.Diff.Mean)
		byScenario[c.Scenario] = append(byScenario[c.Scenario], c.Diff.Mean)
		if high := c.Diff.Within(level)[1]; high < worst {
			worst, where = high, at(c)
		}
	}
	gates := []Gate{
		gate("no cell wholly below -1 point (upper end of the worst simultaneous interval)", worst, -1, where),
		gate("mean over workloads against the best baseline of each cell, points", meanOf(byScenario), 1, fmt.Sprintf("median cell %+.2f", stat.Median(all))),
	}
	single := map[string]map[string][]float64{}
	for _, c := range cells {
		for name, v := range c.Means {
			if name == c.Policy || name == "adaptive" { // adaptive is ours too
				continue
			}
			if single[name] == nil {
				single[name] = map[string][]float64{}
			}
			single[name][c.Scenario] = append(single[name][c.Scenario], c.Means[c.Policy]-v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(single)) {
		want := 3.0
		if name == "argmin-ttft" {
			want = 1.5
		}
		gates = append(gates, gate("mean over workloads against "+name+", points", meanOf(single[name]), want, "seeds for choosing"))
	}
	return gates
}

func gate(name string, got, want float64, note string) Gate {
	return Gate{Name: name, Got: got, Want: want, Note: note, OK: got >= want}
}

// meanOf is the mean over scenarios of the mean over their loads.
func meanOf(by map[string][]float64) float64 {
	var means []float64
	for _, name := range slices.Sorted(maps.Keys(by)) {
		means = append(means, stat.Mean(by[name]))
	}
	return stat.Mean(means)
}

// at names a cell.
func at(c *Cell) string { return fmt.Sprintf("%s at %g", c.Scenario, c.Load) }
