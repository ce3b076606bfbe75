package router

import "time"

// KVFilter takes out endpoints whose KV usage is above Max. Unknown or old usage passes. It may
// leave nobody: the fleet is saturated then.
type KVFilter struct {
	Max    float64       // share of KV blocks, 0..1; llm-d-router's threshold: 0.8
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// Name implements [Filter].
func (KVFilter) Name() string { return "kv" }

// Filter implements [Filter].
func (f KVFilter) Filter(q *Query, keep []bool) {
	oldest := horizon(q, f.MaxAge)
	for i, k := range keep {
		s := &q.Snap.States[i]
		if k && fresh(s, oldest) && kvUsage(s) > f.Max {
			keep[i] = false
		}
	}
}

var _ Filter = KVFilter{}
