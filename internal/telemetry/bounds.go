package telemetry

import (
	"slices"
	"time"
)

// Bucket bounds in seconds, shared by everything that measures the same thing, so that panels can be
// laid over each other. Callers must not change them.
var (
	TTFTBounds     = []float64{.02, .03, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 60}
	ITLBounds      = []float64{.003, .005, .0075, .01, .0125, .015, .02, .025, .03, .04, .05, .06, .075, .1, .15, .2, .3, .5, 1}
	RequestBounds  = []float64{.1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600}
	DecisionBounds = []float64{10e-6, 20e-6, 35e-6, 50e-6, 75e-6, 100e-6, 150e-6, 200e-6, 300e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 50e-3}
	ErrorBounds    = []float64{.02, .05, .1, .15, .2, .3, .5, .75, 1, 2} // relative errors
)

// WithLimits returns the bounds with the given service levels among them, so that the bucket of a
// level counts exactly the requests that met it. Levels that are not positive are left out.
func WithLimits(bounds []float64, levels ...time.Duration) []float64 {
	out := slices.Clone(bounds)
	for _, l := range levels {
		if l > 0 {
			out = append(out, l.Seconds())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
