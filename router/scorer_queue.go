package router

import "time"

// QueueScorer prefers short queues inside the engines: (Wmax-W)/(Wmax-Wmin) over the candidates, all
// 1 when equal (llm-d-router's queue-scorer). Pages older than MaxAge count as unknown.
type QueueScorer struct {
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// Name implements [Scorer].
func (QueueScorer) Name() string { return "queue" }

// Category implements [Scorer].
func (QueueScorer) Category() Category { return Distribution }

// Score implements [Scorer].
func (c QueueScorer) Score(q *Query, keep []bool, out []float64) {
	gauges(q, keep, c.MaxAge, waiting, out)
	minMax(keep, out)
}

var _ Scorer = QueueScorer{}
