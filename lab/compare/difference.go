package compare

import (
	"math"

	"github.com/presage-router/presage/internal/stat"
)

// The levels of verdicts.
const (
	level     = 0.95
	power     = 0.80
	practical = 0.01 // a difference within this share is the same for practical purposes
)

// differ compares x of policy A with y of policy B, one value per seed each; pairs that lack one are left
// out. good is 1 where more is better, -1 where less is, 0 where neither.
func differ(x, y []float64, good int) Comparison {
	var a, b []float64
	c := Comparison{good: good}
	for k := range x {
		d := x[k] - y[k]
		if math.IsNaN(d) || math.IsInf(d, 0) {
			continue
		}
		a, b, c.Values = append(a, x[k]), append(b, y[k]), append(c.Values, d)
	}
	none := Interval{math.NaN(), math.NaN()}
	c.Seeds, c.P, c.Holm, c.CI95, c.CIAll, c.RelativeCI95, c.Verdict = len(a), 1, 1, none, none, none, NoData
	if len(a) == 0 {
		return c
	}
	p := stat.PairedDifference(a, b, level)
	c.Diff, c.Wins, c.Losses = p.Mean, p.Wins, p.Losses
	if good < 0 {
		c.Wins, c.Losses = p.Losses, p.Wins
	}
	c.base = math.Abs(stat.Mean(b))
	if c.base > 0 {
		c.Relative = c.Diff / c.base
	}
	if len(a) > 1 {
		c.CI95, c.P, c.SD = Interval{p.Low, p.High}, p.P, stat.SD(c.Values)
		if c.base > 0 {
			c.RelativeCI95 = Interval{p.Low / c.base, p.High / c.base}
		}
	}
	c.settle(1, c.P)
	return c
}

// settle gives the verdict on a comparison that is one of m made together, whose p-value Holm's
// procedure has adjusted. The verdict goes by the adjusted p-value; "same" by
// the interval that covers all m at once.
func (c *Comparison) settle(m int, holm float64) {
	c.Holm, c.Needed = holm, 0
	if c.Seeds > 1 {
		half := stat.StudentT(1-(1-level)/float64(m), float64(c.Seeds-1)) * c.SD / math.Sqrt(float64(c.Seeds))
		c.CIAll = Interval{c.Diff - half, c.Diff + half}
	}
	inside := math.Max(math.Abs(c.CIAll[0]), math.Abs(c.CIAll[1])) <= practical*c.base
	switch {
	case c.Seeds == 0:
		c.Verdict = NoData
	case c.Seeds < MinSeeds:
		c.Verdict = TooFew
	case inside:
		c.Verdict = Same
	case holm < 1-level && c.good != 0:
		c.Verdict = Worse
		if c.Diff > 0 == (c.good > 0) {
			c.Verdict = Better
		}
	default:
		c.Verdict = Undecided
		c.Needed = needed(c.Diff, c.SD, c.base)
	}
}

// needed is the number of seeds that would show a difference d, or one of 1 % of the base where d is smaller:
// what is smaller still is the same for practical purposes.
func needed(d, sd, base float64) int {
	n := stat.PairsNeeded(math.Max(math.Abs(d), practical*base), sd, level, power)
	if math.IsNaN(n) || n > 1e6 {
		return 1e6
	}
	return max(int(n), MinSeeds)
}

// together adjusts comparisons of one metric for being looked at together: Holm's p-values, and
// intervals that all hold at once with 95 % (Bonferroni). Those without two seeds are no tests.
func together(all []*Comparison) {
	p := make([]float64, len(all))
	m := 0
	for i, c := range all {
		if p[i] = math.NaN(); c.Seeds > 1 {
			p[i] = c.P
			m++
		}
	}
	for i, holm := range stat.Holm(p) {
		if math.IsNaN(holm) {
			holm = 1
		}
		all[i].settle(max(m, 1), holm)
	}
}
