package features

import "math"

// Prediction is what is foretold of one time, in seconds. The quantiles never cross.
type Prediction struct{ Mean, P50, P90, P99 float32 }

// Known reports whether there is a forecast.
func (p *Prediction) Known() bool { return p.P50 > 0 }

// Forecast is what is foretold of one request on one endpoint.
type Forecast struct {
	TTFT, ITL Prediction
	Price     Price
}

// Price is what the placement of one request costs, in seconds, by the physical law of the
// endpoint's class alone: the part of a forecast whose differences between endpoints are trusted
// enough to rank by.
type Price struct {
	First   float32 // until the first token, waiting for KV blocks aside
	KVWait  float32 // waiting for KV blocks
	Prefill float32 // prefill work that the request adds
	Gap     float32 // mean gap of its answer, half-way through it
	Decode  float32 // streaming its whole answer, at the expected length and under the expected interference
	Sigma   float32 // standard deviation of log errors between endpoints of the class
}

// Members is the number of forecasters that a forecast is blended of.
const Members = 8

// Said is what each forecaster said of one request at its decision, as natural logarithms of
// seconds: TTFT first, then ITL; NaN: nothing. The learner judges them by it when the label comes.
type Said [2][Members]float32

// Nothing is a Said in which nobody said anything.
func Nothing() (s Said) {
	for t := range s {
		for m := range s[t] {
			s[t][m] = float32(math.NaN())
		}
	}
	return s
}
