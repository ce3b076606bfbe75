package scrape

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// fields are the bits of fleet.Known that a memory keeps times for.
var fields = [...]fleet.Known{
	fleet.KnowWaiting, fleet.KnowRunning, fleet.KnowKV, fleet.KnowBlocks,
	fleet.KnowLoRA, fleet.KnowPrefix, fleet.KnowTokens, fleet.KnowPreemptions,
}

// memory is when each field of an endpoint's load was last said by a page.
type memory [len(fields)]time.Time

// keep completes the load of a page received now with what earlier pages said: a field that the
// page lacks keeps its old value, marked as held, until it is older than stale. It also tells since
// when nothing moved and whether the engine restarted meanwhile.
func (m *memory) keep(l, old *fleet.Load, now time.Time, stale time.Duration) {
	l.At = now
	for i, k := range fields {
		if l.Known.Has(k) {
			m[i] = now
			continue
		}
		if !old.Known.Has(k) || now.Sub(m[i]) > stale {
			continue
		}
		l.Known |= k
		l.Held |= k
		if l.HeldAt.IsZero() || m[i].Before(l.HeldAt) {
			l.HeldAt = m[i]
		}
		hold(l, old, k)
	}
	l.ChangedAt = now
	if !old.At.IsZero() && unmoved(l, old) {
		l.ChangedAt = old.ChangedAt
	}
	l.Restarts = old.Restarts
	if restarted(old, l) {
		l.Restarts++
	}
}

// hold copies one field.
func hold(l, old *fleet.Load, k fleet.Known) {
	switch k {
	case fleet.KnowWaiting:
		l.Waiting = old.Waiting
	case fleet.KnowRunning:
		l.Running = old.Running
	case fleet.KnowKV:
		l.KVUsage, l.KVMax = old.KVUsage, old.KVMax
	case fleet.KnowBlocks:
		l.BlockSize, l.Blocks = old.BlockSize, old.Blocks
	case fleet.KnowLoRA:
		l.MaxLoRA, l.RunningLoRA, l.WaitingLoRA = old.MaxLoRA, old.RunningLoRA, old.WaitingLoRA
	case fleet.KnowPrefix:
		l.Queries, l.Hits = old.Queries, old.Hits
	case fleet.KnowTokens:
		l.Prompt, l.Generated = old.Prompt, old.Generated
	case fleet.KnowPreemptions:
		l.Preemptions = old.Preemptions
	}
}

// unmoved reports whether two pages said the same of everything that moves in a working engine.
func unmoved(a, b *fleet.Load) bool {
	return a.Known == b.Known && a.Waiting == b.Waiting && a.Running == b.Running &&
		a.KVUsage == b.KVUsage && a.KVMax == b.KVMax && a.Queries == b.Queries && a.Hits == b.Hits &&
		a.Prompt == b.Prompt && a.Generated == b.Generated && a.Preemptions == b.Preemptions
}

// restarted reports whether a counter went back between two loads. A load that holds a counter says
// nothing new about it.
func restarted(old, l *fleet.Load) bool {
	both := old.Known & l.Known &^ l.Held
	return both.Has(fleet.KnowTokens) && (l.Prompt < old.Prompt || l.Generated < old.Generated) ||
		both.Has(fleet.KnowPrefix) && (l.Queries < old.Queries || l.Hits < old.Hits) ||
		both.Has(fleet.KnowPreemptions) && l.Preemptions < old.Preemptions
}
