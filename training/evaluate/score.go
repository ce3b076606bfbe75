package evaluate

import (
	"math"
	"slices"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
)

// Score tells how good a series of forecasts was. Shares and errors are ratios; Bias is the median
// of log(P50/actual).
type Score struct {
	N          int     `json:"n"`
	Skipped    int     `json:"skipped,omitempty"`
	MAPE       float64 `json:"mape"`
	MedAPE     float64 `json:"medape"`
	P90APE     float64 `json:"p90ape"`
	Bias       float64 `json:"bias"`
	Coverage50 float64 `json:"coverage50,omitempty"`
	Coverage90 float64 `json:"coverage90,omitempty"`
	Coverage99 float64 `json:"coverage99,omitempty"`
	Spread     float64 `json:"spread,omitempty"` // median of P90/P50
}

// pair is one forecast and what happened, in seconds.
type pair struct {
	p        features.Prediction
	said     [features.Members]float32
	actual   float64
	inflight float64
	hit      bool
	pending  bool
	order    int // of its target
}

func score(pairs []pair) Score {
	s := Score{N: len(pairs)}
	if s.N == 0 {
		return s
	}
	ape, logs, spread := make([]float64, s.N), make([]float64, s.N), make([]float64, s.N)
	for i := range pairs {
		q := &pairs[i]
		ape[i] = math.Abs(float64(q.p.P50)-q.actual) / q.actual
		logs[i] = math.Log(float64(q.p.P50) / q.actual)
		spread[i] = float64(q.p.P90 / q.p.P50)
		s.MAPE += ape[i]
		s.Coverage50 += within(q.actual, q.p.P50)
		s.Coverage90 += within(q.actual, q.p.P90)
		s.Coverage99 += within(q.actual, q.p.P99)
	}
	n := float64(s.N)
	s.MAPE /= n
	s.Coverage50, s.Coverage90, s.Coverage99 = s.Coverage50/n, s.Coverage90/n, s.Coverage99/n
	s.MedAPE, s.P90APE = quantile(ape, 0.5), quantile(ape, 0.9)
	s.Bias, s.Spread = quantile(logs, 0.5), quantile(spread, 0.5)
	return s
}

// rival scores point forecasts.
func rival(pairs []pair, say func(*pair) float64) Score {
	var s Score
	var ape, logs []float64
	for i := range pairs {
		q := &pairs[i]
		v := say(q)
		if !(v > 0) {
			continue
		}
		ape = append(ape, math.Abs(v-q.actual)/q.actual)
		logs = append(logs, math.Log(v/q.actual))
	}
	if s.N = len(ape); s.N == 0 {
		return s
	}
	for _, a := range ape {
		s.MAPE += a
	}
	s.MAPE /= float64(s.N)
	s.MedAPE, s.P90APE, s.Bias = quantile(ape, 0.5), quantile(ape, 0.9), quantile(logs, 0.5)
	return s
}

func within(actual float64, p float32) float64 {
	if actual <= float64(p) {
		return 1
	}
	return 0
}

func quantile(v []float64, q float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return stat.Quantile(s, q)
}

func expOf(log float32) float64 { return math.Exp(float64(log)) }
