package router

import (
	"math"
	"time"
)

// RunningScorer prefers small batches inside the engines: (Rmax-R)/(Rmax-Rmin) over the candidates,
// all 1 when equal (llm-d-router's running-requests-scorer).
type RunningScorer struct {
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// Name implements [Scorer].
func (RunningScorer) Name() string { return "running" }

// Category implements [Scorer].
func (RunningScorer) Category() Category { return Distribution }

// Score implements [Scorer].
func (c RunningScorer) Score(q *Query, keep []bool, out []float64) {
	oldest := horizon(q, c.MaxAge)
	for i, k := range keep {
		if !k {
			continue
		}
		out[i] = math.NaN()
		if s := &q.Snap.States[i]; fresh(s, oldest) {
			out[i] = running(s)
		}
	}
	minMax(keep, out)
}

var _ Scorer = RunningScorer{}
