package router

import (
	"math"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// LoRAScorer prefers endpoints that have the request's adapter loaded: 1 running, 0.8 a free adapter
// slot, 0.6 waiting to be loaded, else 0 (llm-d-router's lora-affinity-scorer). Requests without an
// adapter score 0 everywhere.
type LoRAScorer struct {
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// Scores of the four states of an adapter on an endpoint (llm-d-router).
const (
	loraRunning = 1.0
	loraRoom    = 0.8
	loraWaiting = 0.6
	loraFull    = 0.0
)

// Name implements [Scorer].
func (LoRAScorer) Name() string { return "lora" }

// Category implements [Scorer].
func (LoRAScorer) Category() Category { return Affinity }

// Score implements [Scorer].
func (c LoRAScorer) Score(q *Query, keep []bool, out []float64) {
	oldest := horizon(q, c.MaxAge)
	for i, k := range keep {
		switch {
		case !k:
		case q.Req.Adapter == "":
			out[i] = 0
		default:
			out[i] = adapterScore(&q.Snap.States[i], q.Req.Adapter, oldest)
		}
	}
	impute(keep, out)
}

func adapterScore(s *fleet.State, adapter string, oldest time.Time) float64 {
	if !s.Known.Has(fleet.KnowLoRA) || !fresh(s, oldest) {
		return math.NaN()
	}
	isRunning, isWaiting, held := adapters(s, adapter)
	switch {
	case isRunning:
		return loraRunning
	case held < int(s.MaxLoRA):
		return loraRoom
	case isWaiting:
		return loraWaiting
	}
	return loraFull
}

// AdapterFull reports whether the request asks for an adapter that endpoint i neither runs nor expects to
// load, while all its slots are taken: the request waits until nobody uses one of them. Where the
// engine's page is missing or older than [DefaultMaxAge] it reports false.
func (q *Query) AdapterFull(i int) bool {
	return q.Req.Adapter != "" && adapterScore(&q.Snap.States[i], q.Req.Adapter, horizon(q, 0)) == loraFull
}

// adapters tells where an endpoint has the adapter, and how many distinct ones it holds or will:
// engines may list one in both states.
func adapters(s *fleet.State, name string) (isRunning, isWaiting bool, held int) {
	for _, a := range s.RunningLoRA {
		isRunning = isRunning || a == name
	}
	held = len(s.RunningLoRA)
next:
	for _, a := range s.WaitingLoRA {
		isWaiting = isWaiting || a == name
		for _, b := range s.RunningLoRA {
			if a == b {
				continue next
			}
		}
		held++
	}
	return isRunning, isWaiting, held
}

var _ Scorer = LoRAScorer{}
