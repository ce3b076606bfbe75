package router

import "time"

// QueueFilter takes out endpoints with more than Max requests queued inside the engine. Unknown or
// old queues pass. It may leave nobody: the fleet is saturated then.
type QueueFilter struct {
	Max    float64       // llm-d-router's queue depth threshold: 5
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// SaturatedQueue and SaturatedKV are the published saturation limits of llm-d-router.
const (
	SaturatedQueue = 5
	SaturatedKV    = 0.8
)

// Name implements [Filter].
func (QueueFilter) Name() string { return "queue" }

// Filter implements [Filter].
func (f QueueFilter) Filter(q *Query, keep []bool) {
	oldest := horizon(q, f.MaxAge)
	for i, k := range keep {
		s := &q.Snap.States[i]
		if k && fresh(s, oldest) && waiting(s) > f.Max {
			keep[i] = false
		}
	}
}

var _ Filter = QueueFilter{}
