package router

import "time"

// KVScorer prefers free KV cache: 1-k, k the share of KV blocks in use (llm-d-router's
// kv-cache-utilization-scorer). Several ranks behind one address count with their mean.
type KVScorer struct {
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// Name implements [Scorer].
func (KVScorer) Name() string { return "kv" }

// Category implements [Scorer].
func (KVScorer) Category() Category { return Distribution }

// Score implements [Scorer].
func (c KVScorer) Score(q *Query, keep []bool, out []float64) {
	gauges(q, keep, c.MaxAge, kvFree, out)
	impute(keep, out)
}

var _ Scorer = KVScorer{}
