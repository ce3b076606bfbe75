package compare

import (
	"math"
	"testing"
)

func TestPooledPairsSeeds(t *testing.T) {
	cell := func(ours, theirs []float64) Cell {
		return Cell{Diff: Difference{of: differ(ours, theirs, 1)}}
	}
	cells := []Cell{cell([]float64{90, 92, 94}, []float64{80, 80, 80}), cell([]float64{70, 70, 70}, []float64{70, 74, 78}), cell([]float64{1, 2}, []float64{0, 0})}
	all := func(c *Cell) *Difference { return &c.Diff }
	c, base := Pooled(cells, all)
	// By seed: (10+0)/2, (12-4)/2, (14-8)/2. The cell of two seeds pairs with none.
	if c.Seeds != 3 || math.Abs(c.Diff-4) > 1e-9 || math.Abs(base-77) > 1e-9 || c.Wins != 3 || math.Abs(c.Values[2]-3) > 1e-9 {
		t.Errorf("%+v against %v", c, base)
	}
	if c, _ := Pooled(cells, func(*Cell) *Difference { return nil }); c.Seeds != 0 || c.Verdict != NoData {
		t.Errorf("of nothing: %+v", c)
	}
	two := []*Comparison{&c, &c}
	p := c.P
	if AdjustPooled(two); c.Holm < 2*p-1e-12 {
		t.Errorf("p %v adjusted to %v", p, c.Holm)
	}
}
