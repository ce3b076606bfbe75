package router

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// LoRAFilter keeps endpoints where the request's adapter runs or waits to; where none has it, those
// with a free adapter slot; where none has one, everybody (llm-d-router's lora-affinity filter).
// Requests without an adapter pass.
type LoRAFilter struct {
	MaxAge time.Duration // 0: [DefaultMaxAge]
}

// Name implements [Filter].
func (LoRAFilter) Name() string { return "adapter" }

// Filter implements [Filter].
func (f LoRAFilter) Filter(q *Query, keep []bool) {
	if q.Req.Adapter == "" {
		return
	}
	oldest, best := horizon(q, f.MaxAge), adapterUnknown
	for i, k := range keep {
		if k {
			best = max(best, adapterState(&q.Snap.States[i], q.Req.Adapter, oldest))
		}
	}
	if best == adapterUnknown {
		return
	}
	for i, k := range keep {
		keep[i] = k && adapterState(&q.Snap.States[i], q.Req.Adapter, oldest) == best
	}
}

// Where an endpoint stands to an adapter, better last.
const (
	adapterUnknown = iota // no page, or no room
	adapterRoom
	adapterHeld
)

func adapterState(s *fleet.State, adapter string, oldest time.Time) int {
	if !s.Known.Has(fleet.KnowLoRA) || !fresh(s, oldest) {
		return adapterUnknown
	}
	isRunning, isWaiting, held := adapters(s, adapter)
	switch {
	case isRunning || isWaiting:
		return adapterHeld
	case held < int(s.MaxLoRA):
		return adapterRoom
	}
	return adapterUnknown
}

var _ Filter = LoRAFilter{}
