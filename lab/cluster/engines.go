package cluster

import (
	"errors"
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// submit hands a trip to an engine. The caller counted the engine among the trip's parties.
func (s *sim) submit(t *trip, which int) {
	if t.open {
		status := s.offer(t, which)
		if status == 0 {
			return
		}
		s.say(t, wordError, status, s.now)
	}
	s.cancel(t) // elsewhere
	s.drop(t)
}

// offer submits a trip to an engine and returns 0, or the HTTP status with which it is refused.
func (s *sim) offer(t *trip, which int) int32 {
	l, j := &t.legs[which], &t.job
	n := &s.nodes[l.node]
	n.requests++
	if n.fail > 0 && n.rng.Float64() < n.fail {
		return 500
	}
	r := engine.Request{
		ID: uint64(t.id)<<1 | uint64(which), PromptTokens: j.PromptTokens, OutputTokens: j.OutputTokens,
		Blocks: j.Blocks, Adapter: j.Adapter, Priority: int32(-j.Priority),
	}
	if t.legs[prefill].node >= 0 {
		if which == prefill {
			r.OutputTokens, r.Hold = 1, true
		} else {
			r.Remote = true
		}
	}
	h, err := n.Submit(s.now, &r)
	switch {
	case errors.Is(err, engine.ErrDead):
		return 503
	case err != nil:
		return 400
	}
	l.handle, l.active, t.arrived = h, true, s.now
	s.arm(l.node)
	return 0
}

// arm sets an engine's alarm.
func (s *sim) arm(node int) {
	due, ok := s.nodes[node].Next()
	if !ok {
		due = never
	}
	s.alarms.set(node, due)
}

// advance brings an engine to the present and passes on what happened. What that leads to may come
// back to the engine, which is at the present then.
func (s *sim) advance(node int) {
	n := &s.nodes[node]
	if n.telling {
		return
	}
	n.telling = true
	for _, ev := range n.Advance(s.now) {
		s.told(&ev)
	}
	n.telling = false
	s.arm(node)
}

// say sends word of a trip to the router.
func (s *sim) say(t *trip, kind wordKind, n int32, at time.Duration) {
	if s.cfg.Return == 0 {
		s.hear(t, kind, n)
		return
	}
	t.refs++
	s.feed.push(word{at: at + s.cfg.Return, trip: t, kind: kind, n: n})
}

// told takes in one event of an engine.
func (s *sim) told(ev *engine.Event) {
	s.rep.Events++
	t, which := s.trips[ev.ID>>1], int(ev.ID&1)
	l := &t.legs[which]
	switch ev.Kind {
	case engine.Scheduled:
		t.cached, t.queued = ev.N, ev.At-t.arrived
	case engine.Allocated:
		s.transfer(t, ev)
	case engine.FirstToken, engine.Progress:
		if which == decode {
			s.say(t, wordTokens, ev.N, ev.At)
		}
	case engine.Preempted:
		t.preempted++
	case engine.Finished:
		if which == prefill { // its blocks are held until they are transferred
			t.refs++
			s.submit(t, decode)
			return
		}
		l.active = false
		s.say(t, wordEnd, ev.N, ev.At)
		s.drop(t)
	case engine.Failed:
		l.active = false
		s.say(t, wordBroken, 0, ev.At)
		s.cancel(t)
		s.drop(t)
	}
}

// cancel drops a trip from the engines it is on.
func (s *sim) cancel(t *trip) {
	for i := range t.legs {
		l := &t.legs[i]
		if !l.active {
			continue
		}
		l.active = false
		s.advance(l.node)
		s.nodes[l.node].Cancel(s.now, l.handle)
		s.arm(l.node)
		s.drop(t)
	}
}
