package predictor

import (
	"math"

	"github.com/presage-router/presage/predictor/ridge"
)

const (
	reachLabels = 100
	reachWithin = math.Ln2
)

// reach brings a law of which little was learned within a factor of two of what is measured, given
// the logarithm of actual over foretold, and returns the factor by which it scaled the law. Engines
// may be any number of times slower than the prior, and coefficients learned one by one, with clipped
// errors, take hundreds of labels to get there; meanwhile each endpoint's correction takes up
// whatever its labels came first, and the order of endpoints is chance. The factor is a running
// mean, so one odd label, as of an engine that still compiles, is soon outvoted.
func reach(m *ridge.Model, residual float64) float64 {
	over := math.Abs(residual) - reachWithin
	if m.Seen() >= reachLabels || !(over > 0) || math.IsInf(over, 0) {
		return 1
	}
	f := math.Exp(math.Copysign(over, residual) / float64(m.Seen()+1))
	m.Scale(f)
	return f
}
