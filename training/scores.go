package training

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/training/evaluate"
)

// Score tells how good the forecasts of one time were. Errors are relative; Bias is the median of
// log(P50/actual). Pinball is the mean over P50, P90 and P99 of the pinball loss of the logarithms: no
// unit, and no weight to slow requests over fast ones.
type Score struct {
	N          int     `json:"n"`
	MAPE       float64 `json:"mape"`
	MedAPE     float64 `json:"medape"`
	P90APE     float64 `json:"p90ape"`
	Bias       float64 `json:"bias"`
	Coverage50 float64 `json:"coverage50"`
	Coverage90 float64 `json:"coverage90"`
	Coverage99 float64 `json:"coverage99"`
	Pinball    float64 `json:"pinball"`
}

// scores collects the forecasts of one player, by target.
type scores struct {
	rows    int // records seen
	targets [2]collected
}

type collected struct {
	row                  []int // record of each
	p50, p90, p99, truth []float64
	loss                 []float64
}

// add takes a forecast with its outcome, where this is exact.
func (s *scores) add(o *features.Observation) {
	s.rows++
	if o.Endpoint != o.Picked || !o.Stream || o.Status >= 400 {
		return
	}
	if o.TTFT > 0 {
		s.targets[predictor.TTFT].add(s.rows, &o.Fore.TTFT, o.TTFT.Seconds())
	}
	if o.Cause == fleet.Complete && o.ITL > 0 && o.OutputTokens != 0 && o.OutputTokens != 1 {
		s.targets[predictor.ITL].add(s.rows, &o.Fore.ITL, o.ITL.Seconds())
	}
}

func (c *collected) add(row int, p *features.Prediction, truth float64) {
	if !p.Known() {
		return
	}
	c.row = append(c.row, row)
	c.truth = append(c.truth, truth)
	c.p50, c.p90, c.p99 = append(c.p50, float64(p.P50)), append(c.p90, float64(p.P90)), append(c.p99, float64(p.P99))
	log := math.Log(truth)
	var loss float64
	for q, v := range map[float64]float32{.5: p.P50, .9: p.P90, .99: p.P99} {
		loss += stat.Pinball(math.Log(float64(v)), log, q) / 3
	}
	c.loss = append(c.loss, loss)
}

func (c *collected) score() Score {
	e := stat.ForecastErrors(c.p50, c.truth)
	s := Score{N: e.N, MAPE: e.MAPE, MedAPE: e.MedAPE, P90APE: e.P90APE, Bias: e.Bias, Pinball: stat.Mean(c.loss)}
	s.Coverage50, s.Coverage90, s.Coverage99 = c.within(c.p50), c.within(c.p90), c.within(c.p99)
	return s
}

// within is the share of outcomes that a quantile held.
func (c *collected) within(quantile []float64) float64 {
	n := 0
	for i, y := range c.truth {
		if y <= quantile[i] {
			n++
		}
	}
	return float64(n) / float64(len(c.truth))
}

// byTarget are the scores of the targets that have any.
func (s *scores) byTarget() map[string]Score {
	out := map[string]Score{}
	for t, name := range evaluate.TargetNames {
		if len(s.targets[t].truth) > 0 {
			out[name] = s.targets[t].score()
		}
	}
	return out
}

// chunks sums losses of consecutive records: n sums over the records from 1 to rows.
func (c *collected) chunks(n, rows int) []float64 {
	out := make([]float64, n)
	for i, r := range c.row {
		out[min((r-1)*n/max(rows, 1), n-1)] += c.loss[i]
	}
	return out
}

func sumOf(v []float64, index []int) float64 {
	var sum float64
	for _, i := range index {
		sum += v[i]
	}
	return sum
}
