package cluster

import "fmt"

// happen does what an event says.
func (s *sim) happen(ev *Event) {
	for _, k := range ev.Nodes {
		n := &s.nodes[k]
		s.advance(k)
		switch ev.Kind {
		case Slow:
			s.note(n.SetSlowdown(min(max(n.cfg.Slowdown*ev.Factor, 0.01), 1000)))
		case Stall:
			n.Stall(s.now, ev.Length)
		case Kill:
			for _, e := range n.Kill(s.now) {
				s.told(&e)
			}
			n.dead = true
		case Revive:
			n.Revive(s.now)
			n.dead = false
		case Upgrade:
			s.upgrade(n, ev)
		case Fail:
			n.fail = ev.Factor
		case Blind:
			n.blind = true
			if ev.Length > 0 {
				s.agenda.push(item{at: s.now + ev.Length, task: taskSeeing, n: k})
			}
		}
		s.arm(k)
	}
}

func (s *sim) upgrade(n *node, ev *Event) {
	if ev.Profile.Name != "" {
		s.note(n.SetProfile(ev.Profile))
	}
	if ev.MaxSeqs > 0 || ev.MaxBatched > 0 {
		c := n.Config()
		seqs, batched := c.MaxSeqs, c.MaxBatched
		if ev.MaxSeqs > 0 {
			seqs = ev.MaxSeqs
		}
		if ev.MaxBatched > 0 {
			batched = ev.MaxBatched
		}
		s.note(n.SetLimits(seqs, max(batched, seqs)))
	}
}

// note keeps the first error of a run, for its end: an event that an engine refused, an impossible job.
func (s *sim) note(err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("at %v: %w", s.now, err)
	}
}
