package predictor

import (
	"math"

	"github.com/presage-router/presage/features"
)

// The richer linear basis of the two regressions: times in milliseconds, tokens in thousands. Every
// column has a prior mean and deviation for its coefficient, the same for all classes.

type prior struct{ mean, sd float64 }

const (
	firstDim = 15
	gapDim   = 10
)

// firstPriors are those of TTFT, in the order of firstRow.
var firstPriors = [firstDim]prior{
	{20, 30}, {60, 50}, {1, 5}, {60, 50}, {0, 100}, {.5, 2}, {0, 5}, {0, 50},
	{0, 5}, {0, 20}, {0, 20}, {0, 20}, {0, 20}, {0, .5}, {0, 2},
}

// firstRow is the basis of TTFT: a constant, the prefill of the request, the queue of prefills ahead
// of it (in tokens and requests, with the square roots that batching bends them to), the streams it
// shares the engine with, and what the endpoint did last.
func firstRow(x *features.Vector) (r [firstDim]float64) {
	n, u := x.At(features.Prompt)/1e3, x.At(features.Uncached)/1e3
	q, pending, streams := x.At(features.PendingUncached)/1e3, x.At(features.Pending), x.At(features.Streams)
	var queued float64
	if q > 0 {
		queued = 1
	}
	return [firstDim]float64{
		1, u, u * (n - u/2), q, pending, streams, x.At(features.Context) / 1e3, streams * pending / 100,
		x.At(features.Waiting), math.Sqrt(q), queued, math.Sqrt(streams), streams * u / 100,
		1e3 * x.At(features.RecentTTFT), 1e3 * x.At(features.StepTime),
	}
}

// gapPriors are those of ITL, in the order of gapRow.
var gapPriors = [gapDim]prior{{10, 10}, {.2, 2}, {0, 2}, {0, 5}, {0, 1}, {0, 5}, {0, .5}, {0, .5}, {0, 5}, {0, 2}}

// gapRow is the basis of the mean ITL.
func gapRow(x *features.Vector) (r [gapDim]float64) {
	streams := x.At(features.Streams)
	return [gapDim]float64{
		1, streams, x.At(features.Pending), x.At(features.Context) / 1e3, x.At(features.PendingUncached) / 1e3,
		10 * x.At(features.KVUsage), 1e3 * x.At(features.StepTime), 1e3 * x.At(features.RecentITL), math.Sqrt(streams), x.At(features.Waiting),
	}
}
