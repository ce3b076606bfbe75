package gbdt

import (
	"fmt"
	"math"
	"slices"
)

// Table is a training set: rows of features with a target and a weight each. NaN in a feature means
// missing; it is a value of its own for the trees.
type Table struct {
	dim int
	x   []float32 // row-major
	y   []float64
	w   []float64
}

// NewTable returns an empty table of rows with dim features.
func NewTable(dim int) *Table { return &Table{dim: dim} }

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.y) }

// Reset removes all rows, keeping the memory.
func (t *Table) Reset() { t.x, t.y, t.w = t.x[:0], t.y[:0], t.w[:0] }

// Add appends a row. The target must be finite and at most 1e30 from zero, so that no forecast leaves
// the range of a float32; the weight must be positive and finite; infinite features are refused.
func (t *Table) Add(x []float32, y, weight float64) error {
	switch {
	case len(x) != t.dim:
		return fmt.Errorf("row has %d features, table %d", len(x), t.dim)
	case !(math.Abs(y) <= maxValue):
		return fmt.Errorf("target %v is not within %v of zero", y, maxValue)
	case !(weight > 0) || math.IsInf(weight, 0):
		return fmt.Errorf("weight %v is not positive and finite", weight)
	}
	for f, v := range x {
		if math.IsInf(float64(v), 0) {
			return fmt.Errorf("feature %d is %v", f, v)
		}
	}
	t.x = append(t.x, x...)
	t.y = append(t.y, y)
	t.w = append(t.w, weight)
	return nil
}

// maxBins bounds the distinct values a feature is cut into, so that a bin is a byte.
const maxBins = 64

// bins is a table cut into bins, column by column. Bin 0 holds missing values; a value v is in bin
// 1+i where cuts[i-1] < v <= cuts[i], so that "bin > 1+i" is "v > cuts[i]".
type bins struct {
	cuts [][]float32 // by feature, ascending
	code [][]uint8   // by feature, then row
}

func bin(t *Table) *bins {
	n := t.Len()
	b := &bins{cuts: make([][]float32, t.dim), code: make([][]uint8, t.dim)}
	column := make([]float32, 0, n)
	for f := range t.dim {
		column = column[:0]
		for r := range n {
			if v := t.x[r*t.dim+f]; v == v {
				column = append(column, v)
			}
		}
		slices.Sort(column)
		cuts := cut(column)
		code := make([]uint8, n)
		for r := range n {
			if v := t.x[r*t.dim+f]; v == v {
				i, _ := slices.BinarySearch(cuts, v)
				code[r] = uint8(1 + i)
			}
		}
		b.cuts[f], b.code[f] = cuts, code
	}
	return b
}

// cut places borders halfway between neighbouring distinct values, at about equal counts.
func cut(sorted []float32) []float32 {
	distinct := 0
	for i, v := range sorted {
		if i == 0 || v != sorted[i-1] {
			distinct++
		}
	}
	if distinct < 2 {
		return nil
	}
	var cuts []float32
	step := float64(len(sorted)) / maxBins
	next := step
	for i := 1; i < len(sorted); i++ {
		lo, hi := sorted[i-1], sorted[i]
		if lo == hi || (distinct > maxBins && float64(i) < next) {
			continue
		}
		mid := lo + (hi-lo)/2
		if mid >= hi { // neighbouring floats
			mid = lo
		}
		cuts = append(cuts, mid)
		for float64(i) >= next {
			next += step
		}
	}
	return cuts
}
