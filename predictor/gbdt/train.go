package gbdt

import (
	"fmt"
	"math"
)

// Params say how to train. The zero value of a field means its default.
type Params struct {
	Trees     int     // number of trees; default 64
	Depth     int     // levels per tree, 1..8; default 4
	Rate      float64 // shrinkage of each tree, (0,1]; default 0.1
	MinWeight float64 // least total weight of rows on each side of a split, summed over the level; default 10
	Lambda    float64 // ridge penalty of leaf values under squared loss; default 1
	Quantile  float64 // 0: squared loss; else pinball loss of this quantile, (0,1); 0.5 is the absolute error
	Monotone  []int8  // per feature: +1 the forecast must not fall as it grows, -1 must not rise, 0 free; nil: all free
}

func (p Params) withDefaults() Params {
	if p.Trees == 0 {
		p.Trees = 64
	}
	if p.Depth == 0 {
		p.Depth = 4
	}
	if p.Rate == 0 {
		p.Rate = 0.1
	}
	if p.MinWeight == 0 {
		p.MinWeight = 10
	}
	if p.Lambda == 0 {
		p.Lambda = 1
	}
	return p
}

const (
	maxDepth = 8
	maxTrees = 4096
)

func (p Params) check(dim int) error {
	switch {
	case p.Trees < 1 || p.Trees > maxTrees:
		return fmt.Errorf("%d trees: not in 1..%d", p.Trees, maxTrees)
	case p.Depth < 1 || p.Depth > maxDepth:
		return fmt.Errorf("depth %d: not in 1..%d", p.Depth, maxDepth)
	case !(p.Rate > 0 && p.Rate <= 1):
		return fmt.Errorf("rate %v: not in (0,1]", p.Rate)
	case !(p.MinWeight >= 0) || !(p.Lambda >= 0):
		return fmt.Errorf("least weight %v and lambda %v must not be negative", p.MinWeight, p.Lambda)
	case !(p.Quantile >= 0 && p.Quantile < 1):
		return fmt.Errorf("quantile %v: not in [0,1)", p.Quantile)
	case p.Monotone != nil && len(p.Monotone) != dim:
		return fmt.Errorf("%d monotone constraints for %d features", len(p.Monotone), dim)
	}
	return nil
}

// trainer holds the state of one training run.
type trainer struct {
	p    Params
	t    *Table
	b    *bins
	fit  []float64 // current forecast by row
	grad []float64 // weighted negative gradient by row
	hess []float64 // weighted curvature by row
	leaf []uint16  // leaf of each row in the tree being grown
	hist []cell    // leaf x bin
	vals []sample  // scratch for quantiles
}

// cell sums the rows of one bin in one leaf.
type cell struct{ g, h float64 }

// Train fits an ensemble. Rows are used in their order; equal input gives equal output.
func Train(t *Table, p Params) (*Model, error) {
	p = p.withDefaults()
	if err := p.check(t.dim); err != nil {
		return nil, err
	}
	if t.Len() == 0 {
		return nil, fmt.Errorf("no rows to train on")
	}
	n := t.Len()
	tr := &trainer{
		p: p, t: t, b: bin(t),
		fit: make([]float64, n), grad: make([]float64, n), hess: make([]float64, n), leaf: make([]uint16, n),
		hist: make([]cell, (1<<(p.Depth-1))*(maxBins+2)), vals: make([]sample, 0, n),
	}
	m := &Model{dim: t.dim, base: tr.base()}
	for r := range tr.fit {
		tr.fit[r] = m.base
	}
	for range p.Trees {
		tree, ok := tr.grow()
		if !ok {
			break // nothing is left to split: more trees would be constants
		}
		m.trees = append(m.trees, tree)
	}
	return m, nil
}

// base is the best constant: the weighted mean, or quantile, of the targets.
func (tr *trainer) base() float64 {
	if tr.p.Quantile > 0 {
		tr.vals = tr.vals[:0]
		for r, y := range tr.t.y {
			tr.vals = append(tr.vals, sample{y, tr.t.w[r]})
		}
		return quantile(tr.vals, tr.p.Quantile)
	}
	var sum, w float64
	for r, y := range tr.t.y {
		sum += y * tr.t.w[r]
		w += tr.t.w[r]
	}
	return sum / w
}

// gradients sets the negative gradient and curvature of the loss at the current fit. The pinball
// loss has no curvature; its weight stands in, which makes splits maximise the reduction in
// squared gradient, as for the sign of the residual.
func (tr *trainer) gradients() {
	q := tr.p.Quantile
	for r, y := range tr.t.y {
		w, d := tr.t.w[r], y-tr.fit[r]
		switch {
		case q == 0:
			tr.grad[r] = w * d
		case d > 0:
			tr.grad[r] = w * q
		case d < 0:
			tr.grad[r] = w * (q - 1)
		default:
			tr.grad[r] = 0
		}
		tr.hess[r] = w
	}
}

// grow adds one tree and updates the fit. It returns false when no split gains anything.
func (tr *trainer) grow() (tree, bool) {
	tr.gradients()
	clear(tr.leaf)
	var splits []split
	for level := range tr.p.Depth {
		s, ok := tr.bestSplit(level)
		if !ok {
			break
		}
		splits = append(splits, s)
		code := tr.b.code[s.feature]
		for r, c := range code {
			if s.right(c) {
				tr.leaf[r] |= 1 << level
			}
		}
	}
	if len(splits) == 0 {
		return tree{}, false
	}
	leaves := tr.leafValues(1 << len(splits))
	if tr.p.Monotone != nil {
		tr.flatten(splits, leaves)
	}
	out := tree{leaves: make([]float32, len(leaves))}
	for i, v := range leaves {
		out.leaves[i] = float32(v * tr.p.Rate)
	}
	for _, s := range splits {
		cut := tr.b.cuts[s.feature][s.bin-1]
		out.levels = append(out.levels, level{feature: s.feature, cut: cut, missing: s.missing, key: int64(order(cut))})
	}
	for r := range tr.fit {
		tr.fit[r] += float64(out.leaves[tr.leaf[r]])
	}
	return out, true
}

// split sends a row to the right when its bin is above bin, missing values where missing says.
type split struct {
	feature int
	bin     int // 1..len(cuts): the border is cuts[bin-1]
	missing bool
}

func (s split) right(code uint8) bool {
	if code == 0 {
		return s.missing
	}
	return int(code) > s.bin
}

// bestSplit finds the split of all leaves of a level with the largest summed gain
// G_l^2/(H_l+lambda) + G_r^2/(H_r+lambda). Ties go to the lowest feature, then bin.
func (tr *trainer) bestSplit(lvl int) (split, bool) {
	leaves := 1 << lvl
	base := 0.0
	best, bestGain := split{}, 0.0
	for f := range tr.t.dim {
		nb := len(tr.b.cuts[f]) + 2 // missing, then one more bin than borders
		if nb == 2 {
			continue
		}
		h := tr.hist[:leaves*nb]
		clear(h)
		code := tr.b.code[f]
		for r, c := range code {
			k := &h[int(tr.leaf[r])*nb+int(c)]
			k.g += tr.grad[r]
			k.h += tr.hess[r]
		}
		if base == 0 {
			base = tr.parentGain(h, leaves, nb)
		}
		s, gain := tr.scan(f, h, leaves, nb)
		if gain > bestGain {
			best, bestGain = s, gain
		}
	}
	if bestGain <= base*(1+1e-9)+1e-12 {
		return split{}, false
	}
	return best, true
}

func (tr *trainer) score(g, h float64) float64 { return g * g / (h + tr.p.Lambda) }

func (tr *trainer) parentGain(h []cell, leaves, nb int) float64 {
	var sum float64
	for l := range leaves {
		var t cell
		for _, c := range h[l*nb : (l+1)*nb] {
			t.g += c.g
			t.h += c.h
		}
		sum += tr.score(t.g, t.h)
	}
	return sum
}

// scan tries every border of a feature, with missing values on either side.
func (tr *trainer) scan(f int, h []cell, leaves, nb int) (split, float64) {
	var (
		left, miss, total [1 << (maxDepth - 1)]cell
		anyMissing        bool
		best              split
		bestGain          float64
	)
	sign := int8(0)
	if tr.p.Monotone != nil {
		sign = tr.p.Monotone[f]
	}
	for l := range leaves {
		row := h[l*nb : (l+1)*nb]
		miss[l] = row[0]
		anyMissing = anyMissing || row[0].h > 0
		for _, c := range row {
			total[l].g += c.g
			total[l].h += c.h
		}
	}
	for b := 1; b < nb-1; b++ {
		for l := range leaves {
			c := h[l*nb+b]
			left[l].g += c.g
			left[l].h += c.h
		}
		for side := range 2 {
			if side == 1 && !anyMissing {
				break
			}
			var gain, wl, wr, slope float64
			for l := range leaves {
				a := left[l]
				if side == 1 {
					a.g += miss[l].g
					a.h += miss[l].h
				}
				z := cell{total[l].g - a.g, total[l].h - a.h}
				gain += tr.score(a.g, a.h) + tr.score(z.g, z.h)
				wl += a.h
				wr += z.h
				if a.h > 0 && z.h > 0 {
					slope += z.g/z.h - a.g/a.h
				}
			}
			if wl < tr.p.MinWeight || wr < tr.p.MinWeight || slope*float64(sign) < 0 || gain <= bestGain {
				continue
			}
			best, bestGain = split{feature: f, bin: b, missing: side == 0 && anyMissing}, gain
		}
	}
	return best, bestGain
}

// leafValues fits each leaf: the shrunken mean of residuals, or their weighted quantile pulled
// towards zero by the same weight. Empty leaves stay zero.
func (tr *trainer) leafValues(n int) []float64 {
	out := make([]float64, n)
	if tr.p.Quantile > 0 {
		for l := range out {
			tr.vals = tr.vals[:0]
			var w float64
			for r, lf := range tr.leaf {
				if int(lf) == l {
					tr.vals = append(tr.vals, sample{tr.t.y[r] - tr.fit[r], tr.t.w[r]})
					w += tr.t.w[r]
				}
			}
			if w > 0 {
				out[l] = quantile(tr.vals, tr.p.Quantile) * w / (w + tr.p.Lambda)
			}
		}
		return out
	}
	g, h := make([]float64, n), make([]float64, n)
	for r, l := range tr.leaf {
		g[l] += tr.grad[r]
		h[l] += tr.hess[r]
	}
	for l := range out {
		if h[l] > 0 {
			out[l] = g[l] / (h[l] + tr.p.Lambda)
		}
	}
	return out
}

// flatten makes leaves obey the monotone constraints: pairs of leaves that differ only in a
// constrained level and are in the wrong order are set to their mean, until none is left.
func (tr *trainer) flatten(splits []split, leaves []float64) {
	for range 4 * len(splits) * len(leaves) {
		changed := false
		for lvl, s := range splits {
			sign := float64(tr.p.Monotone[s.feature])
			if sign == 0 {
				continue
			}
			for l := range leaves {
				if l&(1<<lvl) != 0 {
					continue
				}
				r := l | 1<<lvl
				if sign*(leaves[r]-leaves[l]) < -1e-12*(math.Abs(leaves[l])+math.Abs(leaves[r])) {
					mid := (leaves[l] + leaves[r]) / 2
					leaves[l], leaves[r] = mid, mid
					changed = true
				}
			}
		}
		if !changed {
			return
		}
	}
	clear(leaves) // no order found: the tree says nothing rather than something wrong
}
