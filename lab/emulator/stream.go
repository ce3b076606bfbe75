package emulator

import (
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// stream is one answer under way, between the engine, which tells how far it is, and the goroutine
// that writes it. The engine's side never waits.
type stream struct {
	told   atomic.Int64  // tokens visible, and flags above them
	cached atomic.Int32  // prompt tokens found in the cache; set before the first token
	notify chan struct{} // of capacity 1, shared by the answers of one request

	// Of the engine's side, under Emulator.mu.
	handle    engine.Handle
	slot      uint32
	unit      *unit
	blocks    []uint64
	tokens    []uint32 // prompt and answer, and the adapter's name, where KV events tell them
	name      string
	adapter   int32
	arrived   time.Duration
	scheduled time.Duration
	first     time.Duration
	last      time.Duration
	preempted int
	listed    bool // the pump will wake the writer
	ended     bool
}

const (
	flagDone   = 1 << 32 // all tokens are visible
	flagFailed = 1 << 33 // the engine died
)

// wake tells the writer, who may already know.
func (s *stream) wake() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// progress is what the writer may write now.
func (s *stream) progress() (tokens int, done, failed bool) {
	v := s.told.Load()
	return int(v & (flagDone - 1)), v&flagDone != 0, v&flagFailed != 0
}
