package stat

import "math"

// Errors sums up how far forecasts were off, relative to what happened: e = |forecast-actual|/actual.
type Errors struct {
	N      int
	MAPE   float64 // mean of e
	MedAPE float64 // median of e
	P90APE float64 // .9-quantile of e
	Bias   float64 // median of log(forecast/actual): above 0 they were too high
}

// ForecastErrors compares forecasts with what happened. Actual values are above 0. A forecast of 0 or
// less counts with a log ratio of -Inf. It panics if the lengths differ.
func ForecastErrors(forecast, actual []float64) Errors {
	if len(forecast) != len(actual) {
		panic("stat: forecasts and actuals of unequal length")
	}
	ape, ratio := make([]float64, len(actual)), make([]float64, len(actual))
	for i, y := range actual {
		ape[i] = math.Abs(forecast[i]-y) / y
		ratio[i] = math.Log(max(forecast[i], 0) / y)
	}
	q := Quantiles(ape, .5, .9)
	return Errors{N: len(actual), MAPE: Mean(ape), MedAPE: q[0], P90APE: q[1], Bias: Median(ratio)}
}

// MAPE is the mean of |forecast-actual|/actual.
func MAPE(forecast, actual []float64) float64 { return ForecastErrors(forecast, actual).MAPE }

// Pinball is the loss of a forecast of the q-quantile: q·d if the actual value is above by d,
// (1-q)·d if it is below by d. Its mean is least for the true quantile.
func Pinball(forecast, actual, q float64) float64 {
	if d := actual - forecast; d >= 0 {
		return q * d
	}
	return (1 - q) * (forecast - actual)
}
