package cluster

import (
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// transfer begins to move a prompt's KV from its prefill engine to its decode engine.
func (s *sim) transfer(t *trip, ev *engine.Event) {
	from := &s.nodes[t.legs[prefill].node]
	bytes := float64(ev.N) * float64(from.kvBytes)
	start := max(ev.At, from.link)
	from.link = start + s.cfg.Transfer.Setup + time.Duration(bytes/s.cfg.Transfer.Rate*1e9)
	t.refs++
	s.agenda.push(item{at: from.link, task: taskDeliver, trip: t})
}

// deliver ends a transfer.
func (s *sim) deliver(t *trip) {
	p, d := &t.legs[prefill], &t.legs[decode]
	if d.active {
		s.advance(d.node)
		s.nodes[d.node].Deliver(s.now, d.handle)
		s.arm(d.node)
	}
	if p.active {
		p.active = false
		s.advance(p.node)
		s.nodes[p.node].Release(s.now, p.handle)
		s.arm(p.node)
		s.drop(t)
	}
}
