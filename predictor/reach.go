package predictor

import (
	"math"
	"slices"

	"github.com/presage-router/presage/predictor/ridge"
)

const (
	reachLabels = 100         // after which a law is where it belongs
	reachWindow = 15          // labels whose median counts
	reachLeast  = 4           // labels before it does: the first ones are of engines that still compile
	reachWithin = 1.098612289 // log of 3
)

// reach brings a law of which little was learned to the speed that is measured. Engines may be any
// number of times slower than the prior, and coefficients learned one by one, with clipped errors,
// take hundreds of labels to get there; meanwhile each endpoint's correction takes up whatever its
// labels came first, and the order of endpoints is chance. When the median error of the last labels
// exceeds a factor of three, the whole law is scaled by it.
type reach struct {
	left []float64 // logarithms of actual over foretold, as the law is now
}

// scale takes one such logarithm and returns the factor by which it scaled the law.
func (r *reach) scale(law *ridge.Model, residual float64) float64 {
	if law.Seen() >= reachLabels || math.IsNaN(residual) || math.IsInf(residual, 0) {
		return 1
	}
	r.left = append(r.left[max(0, len(r.left)-reachWindow+1):], residual)
	if len(r.left) < reachLeast {
		return 1
	}
	sorted := slices.Sorted(slices.Values(r.left))
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	mid := low
	if math.Abs(high) < math.Abs(low) {
		mid = high
	}
	if math.Abs(mid) < reachWithin {
		return 1
	}
	for i := range r.left {
		r.left[i] -= mid
	}
	law.Scale(math.Exp(mid))
	return math.Exp(mid)
}
