package router

import (
	"math"
	"time"
)

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
	oldest := horizon(q, c.MaxAge)
	for i, k := range keep {
		if !k {
			continue
		}
		out[i] = math.NaN()
		if s := &q.Snap.States[i]; fresh(s, oldest) {
			out[i] = 1 - kvUsage(s)
		}
	}
	impute(keep, out)
}

var _ Scorer = KVScorer{}
