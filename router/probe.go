package router

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// DefaultProbe is how long an endpoint whose page claims work, but that serves nothing of ours, may
// go without a request before it is tried.
const DefaultProbe = 20 * time.Second

// probePatience is how many times its fair share an endpoint must have been passed over before it
// is tried: the guard against probing where there simply is little traffic.
const probePatience = 64

// prober breaks the loop of an engine that reports a load it no longer has: gauges may freeze at
// "full" until the engine's next step, and scores that believe them never send it one.
type prober struct {
	after time.Duration // negative: never
	turn  uint64
	last  []visit // by slot
}

type visit struct{ instance, turn uint64 }

// due returns the candidate to try now, the longest passed over, or -1.
func (p *prober) due(q *Query) int {
	p.turn++
	if p.after < 0 {
		return -1
	}
	if n := q.Snap.Slots; len(p.last) < n {
		p.last = append(p.last, make([]visit, n-len(p.last))...)
	}
	patience := uint64(probePatience * q.Candidates())
	since := q.Now.Add(-p.after)
	pick := -1
	for i, k := range q.Keep {
		if !k {
			continue
		}
		s := &q.Snap.States[i]
		v := &p.last[s.Slot]
		if v.instance != s.Instance {
			*v = visit{s.Instance, p.turn}
		}
		if s.Requests != 0 || p.turn-v.turn < patience || !claimsWork(s) || !idleSince(s, since) {
			continue
		}
		if pick < 0 || v.turn < p.last[q.Snap.States[pick].Slot].turn {
			pick = i
		}
	}
	return pick
}

// visited notes that the endpoint got a request.
func (p *prober) visited(s *fleet.State) {
	if s.Slot < len(p.last) {
		p.last[s.Slot] = visit{s.Instance, p.turn}
	}
}

func claimsWork(s *fleet.State) bool { return waiting(s) > 0 || running(s) > 0 }

// idleSince reports whether the endpoint has had nothing of ours to do after t.
func idleSince(s *fleet.State, t time.Time) bool {
	return !s.LastBegin.After(t) && !s.LastEnd.After(t) && !s.Since.After(t)
}
