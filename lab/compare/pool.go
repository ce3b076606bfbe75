package compare

import "github.com/presage-router/presage/internal/stat"

// Pooled is the mean over cells of ours minus another policy in points of attainment, seed by seed: the
// cells of contests with equal Compare seeds pair. of names the difference of a cell; a cell where it
// is nil, or has another number of seeds than the first one, is left out. base is the mean of the other
// policy.
func Pooled(cells []Cell, of func(*Cell) *Difference) (c Comparison, base float64) {
	var sums, bases []float64
	n := 0
	for i := range cells {
		d := of(&cells[i])
		if d == nil || sums != nil && len(d.of.Values) != len(sums) {
			continue
		}
		if sums == nil {
			sums = make([]float64, len(d.of.Values))
		}
		for k, v := range d.of.Values {
			sums[k] += v
		}
		bases = append(bases, d.of.base)
		n++
	}
	zeros := make([]float64, len(sums))
	for k := range sums {
		sums[k] /= float64(n)
	}
	c = differ(sums, zeros, 1)
	if n == 0 {
		return c, 0
	}
	c.base = stat.Mean(bases)
	if c.base > 0 {
		c.Relative = c.Diff / c.base
		c.RelativeCI95 = Interval{c.CI95[0] / c.base, c.CI95[1] / c.base}
	}
	c.settle(1, c.P)
	return c, c.base
}

// AdjustPooled looks at pooled differences together, as [AdjustCells] does at cells.
func AdjustPooled(all []*Comparison) { together(all) }
