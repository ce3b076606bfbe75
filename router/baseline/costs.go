package baseline

import (
	"math"

	"github.com/presage-router/presage/router"
)

// costs is what rules of one cost per endpoint share: the figures, the draw among the lowest, the
// explanation. The embedding policy calls start, then set for each candidate, then lowest.
type costs struct {
	unit      string
	terms     []string
	fallbacks int

	cost []float64 // by row of the snapshot; for scores, their negative
	keep []bool    // candidates still considered
}

func newCosts(p router.Params, unit string, terms ...string) costs {
	return costs{unit: unit, terms: terms, fallbacks: p.Fallbacks}
}

// start sizes everything for the query; all its candidates are considered.
func (c *costs) start(q *router.Query, d *router.Decision) {
	d.Why.Size(c.unit, c.terms, len(q.Keep))
	if cap(c.cost) < len(q.Keep) {
		c.cost = make([]float64, len(q.Keep))
	}
	c.cost = c.cost[:len(q.Keep)]
	c.keep = append(c.keep[:0], q.Keep...)
}

// set gives candidate i the sum of the terms, in their order.
func (c *costs) set(d *router.Decision, i int, terms ...float64) {
	sum, row := 0.0, d.Why.Row(i)
	for t, v := range terms {
		sum += v
		row[t] = float32(v)
	}
	d.Why.Totals[i] = float32(sum)
	if d.Why.HigherWins() {
		sum = -sum
	}
	if math.IsNaN(sum) {
		sum = math.Inf(1) // never the best for want of a figure
	}
	c.cost[i] = sum
}

// drop takes candidate i out, for the reason given.
func (c *costs) drop(d *router.Decision, i int, why string) {
	c.keep[i] = false
	d.Why.Filtered[i] = why
}

// lowest picks a random one of the lowest costs among those still considered.
func (c *costs) lowest(q *router.Query, d *router.Decision) {
	ties := 0
	var best float64
	for i, k := range c.keep {
		switch {
		case !k:
		case ties == 0 || c.cost[i] < best:
			best, ties = c.cost[i], 1
		case c.cost[i] == best:
			ties++
		}
	}
	n := q.Rand.IntN(ties)
	for i, k := range c.keep {
		if !k || c.cost[i] != best {
			continue
		}
		if n == 0 {
			d.Index, d.Propensity = i, 1/float64(ties)
			break
		}
		n--
	}
	d.Judge(q, c.keep)
	d.Rank(q, c.keep, c.fallbacks)
}
