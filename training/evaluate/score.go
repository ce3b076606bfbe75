package evaluate

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
)

// Score tells how good a series of forecasts was. Errors, shares and coverages are ratios; Bias is
// the median of log(P50/actual), above 0 where forecasts were too high.
type Score struct {
	N          int     `json:"n"`
	Skipped    int     `json:"skipped"` // labelled requests before the first counted one
	MAPE       float64 `json:"mape"`    // mean of |P50-actual|/actual
	MedAPE     float64 `json:"medape"`
	P90APE     float64 `json:"p90ape"`
	Bias       float64 `json:"bias"`
	Coverage50 float64 `json:"coverage50"` // share of times at or below P50
	Coverage90 float64 `json:"coverage90"`
	Coverage99 float64 `json:"coverage99"`
	Spread     float64 `json:"spread"` // median of P90/P50
}

// Point is the score of a rival, which has no quantiles.
type Point struct {
	N      int     `json:"n"`
	Silent int     `json:"silent,omitempty"` // of these, where it had nothing to say and the slow regression spoke
	MAPE   float64 `json:"mape"`
	MedAPE float64 `json:"medape"`
	P90APE float64 `json:"p90ape"`
	Bias   float64 `json:"bias"`
}

// pair is one forecast and what happened, in seconds.
type pair struct {
	p        features.Prediction
	said     [features.Members]float32
	actual   float64
	x        *features.Vector
	known    int // labels that could be used
	run      int
	at       float64 // seconds since the run began; NaN: no clock
	inflight float64
	endpoint int32
	hit      bool
	drifted  bool // soon after an alarm of the drift detector
}

func score(pairs []pair) Score {
	if len(pairs) == 0 {
		return Score{}
	}
	said, actual, spread := make([]float64, len(pairs)), make([]float64, len(pairs)), make([]float64, len(pairs))
	var within [3]float64
	for i := range pairs {
		q := &pairs[i]
		said[i], actual[i], spread[i] = float64(q.p.P50), q.actual, float64(q.p.P90/q.p.P50)
		for k, limit := range [3]float32{q.p.P50, q.p.P90, q.p.P99} {
			if q.actual <= float64(limit) {
				within[k]++
			}
		}
	}
	e, n := stat.ForecastErrors(said, actual), float64(len(pairs))
	return Score{
		N: e.N, MAPE: e.MAPE, MedAPE: e.MedAPE, P90APE: e.P90APE, Bias: e.Bias,
		Coverage50: within[0] / n, Coverage90: within[1] / n, Coverage99: within[2] / n, Spread: stat.Median(spread),
	}
}

// points scores point forecasts, in seconds.
func points(said []float64, pairs []pair) Point {
	actual := make([]float64, len(pairs))
	for i := range pairs {
		actual[i] = pairs[i].actual
	}
	e := stat.ForecastErrors(said, actual)
	return Point{N: e.N, MAPE: e.MAPE, MedAPE: e.MedAPE, P90APE: e.P90APE, Bias: e.Bias}
}

func expOf(log float32) float64 { return math.Exp(float64(log)) }
