package main

import (
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/training/evaluate"
)

// standing says how the blend does on one unit and target against the better running median and the
// better trees.
type standing struct {
	Unit   string  `json:"unit"`
	Target string  `json:"target"`
	Blend  float64 `json:"blend_mape"`
	Median float64 `json:"median_mape"`
	Trees  float64 `json:"trees_mape"`
	Best   string  `json:"best_rival"`
	Holds  bool    `json:"holds"` // the blend is no more than 2 % worse than either
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
		median, medianName := least(f.Rivals[target], "median-30", "median-100")
		trees, treesName := least(f.Rivals[target], "trees", "trees-ratio", "boosted")
		n := standing{Unit: f.Unit, Target: target, Blend: s.MAPE, Median: median, Trees: trees, Best: medianName}
		if trees < median {
			n.Best = treesName
		}
		n.Holds = s.MAPE <= margin*min(median, trees)
		list = append(list, n)
	})
	return list
}

// least returns the rival of least error among those named.
func least(r evaluate.Rivals, names ...string) (mape float64, name string) {
	for _, n := range names {
		if p, ok := r[n]; ok && (name == "" || p.MAPE < mape) {
			mape, name = p.MAPE, n
		}
	}
	return mape, name
}

func printStandings(t *terminal.Terminal, list []standing) {
	if len(list) == 0 {
		return
	}
	held := 0
	table(t, "Units: MAPE in % of the blend, the better running median, the better trees", func(row func(...any)) {
		row("", "", "blend", "median", "trees", "best rival", "holds")
		for _, s := range list {
			holds := "NO"
			if s.Holds {
				held++
				holds = "yes"
			}
			row(s.Unit, s.Target, percent(s.Blend), percent(s.Median), percent(s.Trees), s.Best, holds)
		}
	})
	t.Result("The blend is at most 2 %% worse than both on %d of %d (%s %%).", held, len(list), percent(float64(held)/float64(len(list))))
}
