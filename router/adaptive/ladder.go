package adaptive

import (
	"fmt"
	"math"

	"github.com/presage-router/presage/router"
)

// Part is a scorer and its proportion within its side: within a side, weights stay as the parts are.
type Part struct {
	Scorer router.Scorer
	Part   float64 // above 0
}

// rungs is the number of steps between the lowest and the highest share of distribution.
const rungs = 12

// rung is one vector of weights. It is immutable.
type rung struct {
	at      int       // place on the ladder, 0 for the least distribution
	share   float64   // of distribution
	weights []float64 // by scorer, above 0, summing up to 1
	static  []float64 // by scorer: fixed weight over weight in force
}

// newLadder makes all vectors. static has a weight, 0 or above, per part.
func newLadder(c *Curve, parts []Part, static []float64) ([]rung, error) {
	var side [2]float64
	for _, p := range parts {
		if !(p.Part > 0 && p.Part <= 1e6) { //nolint:staticcheck // NaN must fail too
			return nil, fmt.Errorf("scorers.%s: part %v: not above 0 and at most 1e6", p.Scorer.Name(), p.Part)
		}
		side[p.Scorer.Category()] += p.Part
	}
	for c, sum := range side {
		if sum == 0 {
			return nil, fmt.Errorf("scorers: none on the side of %s", router.Category(c))
		}
	}
	if len(static) != len(parts) {
		return nil, fmt.Errorf("static: %d weights for %d scorers", len(static), len(parts))
	}
	out := make([]rung, rungs+1)
	for i := range out {
		r := &out[i]
		r.at, r.share = i, c.Low+(c.High-c.Low)*float64(i)/rungs
		for t, p := range parts {
			w := r.share
			if p.Scorer.Category() == router.Affinity {
				w = 1 - r.share
			}
			w *= p.Part / side[p.Scorer.Category()]
			if !(static[t] >= 0 && static[t] <= 1e6) { //nolint:staticcheck // NaN must fail too
				return nil, fmt.Errorf("static.%s: %v: not within 0 and 1e6", p.Scorer.Name(), static[t])
			}
			r.weights, r.static = append(r.weights, w), append(r.static, static[t]/w)
		}
	}
	return out, nil
}

// climb returns the place for a share when standing on another: the nearest one, unless the share is
// less than three quarters of a step away. It rises with both.
func climb(c *Curve, from int, share float64) int {
	x := (share - c.Low) / (c.High - c.Low) * rungs
	if math.Abs(x-float64(from)) < 0.75 {
		return from
	}
	return min(max(int(math.Round(x)), 0), rungs)
}
