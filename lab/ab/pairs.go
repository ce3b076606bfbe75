package ab

import (
	"maps"
	"math"
	"slices"
)

// pair is the requests of two arms that met the same conditions as nearly as the experiment allows: a
// stretch of blocks, or one cell of a split.
type pair struct {
	a, b []*sums
}

const longestHole = 3 // blocks without a request after which a stretch begins anew

// kept are the numbers of the cells that count, in order. Of a switchback, a block that the log shows
// only a part of does not.
func (l *Ledger) kept() []int64 {
	keys := slices.Sorted(maps.Keys(l.cells))
	p := l.plan
	if p.Unit != "block" || len(keys) == 0 {
		return keys
	}
	tolerance := int64(p.Block) / 20
	if p.Records > 0 {
		tolerance = max(tolerance, 20*int64(p.To.Sub(p.From))/int64(p.Records))
	}
	return slices.DeleteFunc(keys, func(k int64) bool {
		begin := k*int64(p.Block) + int64(p.Washout)
		return begin+tolerance < p.From.UnixNano() || (k+1)*int64(p.Block)-tolerance > p.To.UnixNano()
	})
}

// pairs are those of an arm and the control, in order of time, and how many sides were left out for
// having too few requests.
func (l *Ledger) pairs(arm int) (out []pair, thin int) {
	control := l.plan.control()
	var open pair
	last := int64(math.MinInt64)
	for _, k := range l.kept() {
		c := l.cells[k]
		if k-last > longestHole && last != math.MinInt64 || l.plan.Unit != "block" {
			open = pair{}
		}
		for _, side := range []struct {
			arm int
			to  *[]*sums
		}{{arm, &open.a}, {control, &open.b}} {
			s := c.arms[side.arm]
			if s == nil || l.stray(c, side.arm) {
				continue
			}
			last = k
			if s.ended < fewest {
				thin++
				continue
			}
			*side.to = append(*side.to, s)
		}
		if len(open.a) > 0 && len(open.b) > 0 {
			out = append(out, open)
			open = pair{}
		}
	}
	return out, thin
}

// stray reports whether an arm met a block that belongs to another: replicas whose clocks differ.
func (l *Ledger) stray(c *cell, arm int) bool {
	return l.plan.Unit == "block" && l.owner(c) != arm
}

// owner is the arm that has most requests of a cell.
func (l *Ledger) owner(c *cell) int {
	best := -1
	for i, s := range c.arms {
		if s != nil && (best < 0 || s.arrived > c.arms[best].arrived) {
			best = i
		}
	}
	return best
}

// mean is that of a metric over the cells of a side; NaN where one has too few requests.
func mean(cells []*sums, of func(*sums) float64) float64 {
	sum := 0.0
	for _, s := range cells {
		sum += of(s)
	}
	return sum / float64(len(cells))
}

// series are the differences of pairs in a metric and the values of the control, where both are known.
func series(pairs []pair, of func(*sums) float64) (diffs, base []float64) {
	for i := range pairs {
		a, b := mean(pairs[i].a, of), mean(pairs[i].b, of)
		if !math.IsNaN(a - b) {
			diffs = append(diffs, a-b)
			base = append(base, b)
		}
	}
	return diffs, base
}

// folds are the differences within the control, for the A/A check: halves by hash of what was
// assigned, or, of a switchback, blocks against their next, either way round by hash.
func (l *Ledger) folds() []float64 {
	control := l.plan.control()
	var out []float64
	before, flip := math.NaN(), false
	for _, k := range l.kept() {
		c := l.cells[k]
		s := c.arms[control]
		if s == nil || l.stray(c, control) {
			continue
		}
		if l.plan.Unit != "block" {
			if d := attained(&s.foldA) - attained(&s.foldB); !math.IsNaN(d) {
				out = append(out, d)
			}
			continue
		}
		switch now := attained(&s.tally); {
		case math.IsNaN(now):
		case math.IsNaN(before):
			before, flip = now, mix(uint64(k))&1 == 0
		default:
			d := now - before
			if flip {
				d = -d
			}
			out = append(out, d)
			before = math.NaN()
		}
	}
	return out
}
