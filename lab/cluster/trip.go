package cluster

import (
	"slices"
	"time"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// trip is one request on its way: client, router, engine and back.
type trip struct {
	// What every token touches comes first.
	open   bool // the router has not seen its end
	gen    uint32
	tokens int32 // told to the router
	first  time.Duration
	last   time.Duration // token, at the router
	id     int           // in sim.trips
	refs   int           // parties that still know it: the router, each engine, words on their way
	legs   [2]leg        // decode (or all of it), prefill

	front  *front // that routed it
	flight router.Flight
	job    Job
	req    request.Request

	number     uint64
	sent       time.Duration
	arrived    time.Duration // at the engine
	queued     time.Duration // from then to its first step
	believed   int
	cached     int32
	preempted  int
	chain, all []uint64 // the router's blocks of the prompt, and of prompt and answer
}

// leg is a trip's stay on an engine.
type leg struct {
	node   int
	handle engine.Handle
	active bool
}

const (
	decode  = 0
	prefill = 1
)

// coarse appends every n-th hash of a chain, which stands for all before it, as far as tokens go; dst has
// those at its beginning already.
func coarse(dst, blocks []uint64, block, tokens int) []uint64 {
	n := block / blockTokens
	dst = slices.Grow(dst, max(0, min(len(blocks), tokens/blockTokens)/n-len(dst)))
	for i := n*(len(dst)+1) - 1; i < len(blocks) && (i+1)*blockTokens <= tokens; i += n {
		dst = append(dst, blocks[i])
	}
	return dst
}

// take returns an unused trip.
func (s *sim) take() *trip {
	if n := len(s.unused); n > 0 {
		t := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return t
	}
	t := &trip{id: len(s.trips), gen: 1}
	s.trips = append(s.trips, t)
	return t
}

// drop is called when a party has done with a trip.
func (s *sim) drop(t *trip) {
	t.refs--
	if t.refs > 0 {
		return
	}
	t.flight.Reset()
	t.job, t.gen = Job{}, t.gen+1
	s.unused = append(s.unused, t)
}
