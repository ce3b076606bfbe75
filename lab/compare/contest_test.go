package compare

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestContest: the best of the others is chosen on other seeds, a run is made once, and the control loses.
func TestContest(t *testing.T) {
	var most int
	c := &Contest{
		Arena: arenaOf(t, tiny), Ours: "predictive", Others: []string{"weighted", "round-robin", "least-request"}, Also: []string{"round-robin"},
		Loads: []float64{1, 2}, Choose: []uint64{11}, Compare: []uint64{1, 2}, Control: "always-busiest", Workers: 2,
		Progress: func(done, total int) { most = max(most, done-total) },
	}
	cells, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != 2 || cells[0].Control != nil || cells[1].Control == nil || !cells[1].Control.Lost {
		t.Fatalf("%+v", cells)
	}
	for _, cell := range cells {
		d := &cell.Diff
		if cell.Means[cell.Best] < cell.Means["round-robin"] || d.Seeds != 2 || d.Holm < d.P || d.CIAll[0] > d.CI95[0] || d.Verdict != TooFew {
			t.Errorf("%+v", cell)
		}
		if in := d.Within(.95); math.Abs(in[0]-d.CI95[0]) > 1e-9 || math.Abs(in[1]-d.CI95[1]) > 1e-9 {
			t.Errorf("within 95 %%: %v, want %v", in, d.CI95)
		}
	}
	before, _ := c.runs.Made()
	k, err := c.Knees(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if k.Best == "" || k.Ratio.Seeds != 2 || k.Ratio != k.Also[k.Best] || k.Also["round-robin"].Ratio <= 0 || k.Knees["predictive"].Load <= 0 {
		t.Errorf("%+v", k)
	}
	after, _ := c.runs.Made()
	if most > 0 {
		t.Errorf("%d more than announced", most)
	}
	points := 0
	for _, kept := range c.runs.kept {
		if kept != nil {
			points++
		}
	}
	if after != points || after <= before {
		t.Errorf("%d runs, then %d, of which %d are different", before, after, points)
	}
	for _, v := range []any{cells, k, KneeGates([]KneeCell{*k}), ControlGates(cells)} {
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	}
	if text := MarkdownKnees([]KneeCell{*k, {Scenario: "upgrade", NoKnee: "none"}}); !strings.Contains(text, "| tiny | ") || !strings.Contains(text, "| upgrade | | | | | | none |") {
		t.Error(text)
	}
}

func TestKneeGates(t *testing.T) {
	cell := func(name string, best, plain Ratio) KneeCell {
		return KneeCell{Scenario: name, Ratio: best, Also: map[string]Ratio{"round-robin": plain}}
	}
	good := Ratio{B: "lmetric", Ratio: 1.1, Seeds: 8}
	twice := Ratio{B: "round-robin", Ratio: 2, Seeds: 8}
	for name, c := range map[string]struct {
		cells []KneeCell
		want  []bool
	}{
		"all kept":          {[]KneeCell{cell("a", good, twice), cell("b", good, twice)}, []bool{true, true, true}},
		"one below":         {[]KneeCell{cell("a", good, twice), cell("b", Ratio{Ratio: .97, Seeds: 8}, twice)}, []bool{true, false, true}},
		"mean below":        {[]KneeCell{cell("a", Ratio{Ratio: .99, Seeds: 8}, twice)}, []bool{false, true, true}},
		"zero left out":     {[]KneeCell{cell("a", good, Ratio{Zero: 8}), cell("b", good, twice)}, []bool{true, true, true}},
		"near round-robin":  {[]KneeCell{cell("a", good, Ratio{Ratio: 1.2, Seeds: 8})}, []bool{true, true, false}},
		"ours has none":     {[]KneeCell{cell("a", good, twice), cell("b", Ratio{Ratio: 1.2, Seeds: 1, Lost: 7}, twice)}, []bool{true, false, true}},
		"no knee at all":    {[]KneeCell{{Scenario: "failures", NoKnee: "none"}}, nil},
		"no round-robin at": {[]KneeCell{{Scenario: "a", Ratio: good}}, []bool{true, true}},
	} {
		gates := KneeGates(c.cells)
		if len(gates) != len(c.want) {
			t.Errorf("%s: %+v", name, gates)
			continue
		}
		for i, g := range gates {
			if g.OK != c.want[i] {
				t.Errorf("%s: %+v, want %v", name, g, c.want[i])
			}
		}
	}
}

func TestControlGates(t *testing.T) {
	lost := Cell{Scenario: "a", Control: &Control{Diff: .4, CI95: Interval{.3, .5}, Lost: true}}
	not := Cell{Scenario: "b", Control: &Control{Diff: .01, CI95: Interval{-.1, .12}}}
	single := Cell{Scenario: "c", Control: &Control{Diff: .2, CI95: Interval{math.NaN(), math.NaN()}, Lost: true}}
	if g := ControlGates([]Cell{lost, {}, single}); len(g) != 1 || !g[0].OK || g[0].Got != 20 {
		t.Errorf("%+v", g)
	}
	if g := ControlGates([]Cell{lost, not}); len(g) != 1 || g[0].OK || g[0].Got != -10 {
		t.Errorf("%+v", g)
	}
	if g := ControlGates([]Cell{{}}); g != nil {
		t.Errorf("%+v", g)
	}
}

// TestCellsAreJudgedTogether: what one cell alone would call a win need not be one among many.
func TestCellsAreJudgedTogether(t *testing.T) {
	cell := func(values ...float64) Cell {
		base := make([]float64, len(values))
		for i := range base {
			base[i] = 50
			values[i] += 50
		}
		return Cell{Diff: Difference{of: differ(values, base, 1)}}
	}
	alone := []Cell{cell(3, 1, 4, 0, 5)}
	AdjustCells(alone)
	var many []Cell
	for range 20 {
		many = append(many, cell(3, 1, 4, 0, 5))
	}
	AdjustCells(many)
	if a, b := alone[0].Diff, many[0].Diff; a.Verdict != Better || b.Verdict != Undecided || !(b.Holm > a.Holm) || b.Needed == 0 || !(b.CIAll[0] < a.CIAll[0]) {
		t.Errorf("alone %+v, one of twenty %+v", a, b)
	}
}
