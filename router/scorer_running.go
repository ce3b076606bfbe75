package router

import "time"

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
	gauges(q, keep, c.MaxAge, running, out)
	minMax(keep, out)
}

var _ Scorer = RunningScorer{}
