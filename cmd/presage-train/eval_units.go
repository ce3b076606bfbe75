package main

import (
	"math"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/training/evaluate"
)

// standing says how the blend does on one unit and target against others: the better running median,
// the better trees of its own, and boosted trees fitted in batches. Errors are MAPE.
type standing struct {
	Unit    string  `json:"unit"`
	Target  string  `json:"target"`
	Blend   float64 `json:"blend"`
	Median  float64 `json:"median"`
	Trees   float64 `json:"trees"`
	Boosted float64 `json:"boosted,omitempty"` // absent without foils
	Holds   bool    `json:"holds"`             // the blend is at most 2 % worse than each
}

const (
	leastRows = 600  // of a unit that is compared
	margin    = 1.02 // of MAPE
)

// standings compares the units with rows enough.
func standings(files []*evaluate.File) (list []standing) {
	each(files, func(f *evaluate.File, target string, s evaluate.Score) {
		if f.Unit == "" || f.Rows < leastRows {
			return
		}
		r := f.Rivals[target]
		n := standing{
			Unit: f.Unit, Target: target, Blend: s.MAPE,
			Median: min(r["median-30"].MAPE, r["median-100"].MAPE), Trees: min(r["trees"].MAPE, r["trees-ratio"].MAPE), Boosted: r["boosted"].MAPE,
		}
		n.Holds = n.holds(n.Median) && n.holds(n.Trees) && n.holds(n.Boosted)
		list = append(list, n)
	})
	return list
}

// holds reports whether the blend is at most 2 % worse than a rival; there is none at 0.
func (n *standing) holds(rival float64) bool { return rival == 0 || n.Blend <= margin*rival }

func printStandings(t *terminal.Terminal, list []standing) {
	if len(list) == 0 {
		return
	}
	var held [4]int // against medians, own trees, boosted trees, all
	table(t, "Units: MAPE in % of the blend, the better median, its better trees, boosted trees", func(row func(...any)) {
		row("", "", "blend", "median", "trees", "boosted", "holds")
		for i := range list {
			s := &list[i]
			for k, ok := range [4]bool{s.holds(s.Median), s.holds(s.Trees), s.holds(s.Boosted), s.Holds} {
				if ok {
					held[k]++
				}
			}
			boosted, holds := "-", "NO"
			if s.Boosted > 0 {
				boosted = percent(s.Boosted)
			}
			if s.Holds {
				holds = "yes"
			}
			row(s.Unit, s.Target, percent(s.Blend), percent(s.Median), percent(s.Trees), boosted, holds)
		}
	})
	of := func(k int) float64 { return math.Round(100 * float64(held[k]) / float64(len(list))) }
	t.Result("Of %d, the blend is at most 2 %% worse than the median on %d (%.0f %%), than its trees on %d (%.0f %%), than boosted trees on %d (%.0f %%), than all on %d (%.0f %%).",
		len(list), held[0], of(0), held[1], of(1), held[2], of(2), held[3], of(3))
}
