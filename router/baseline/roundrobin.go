package baseline

import "github.com/presage-router/presage/router"

// RoundRobin takes ready endpoints in strict rotation, by slot: the candidate whose turn was longest
// ago. Over an unchanging set that is plain rotation; where requests differ in their candidates
// (models, subsets) every endpoint still gets its turn among those it shares them with, which one
// moving pointer would not grant. The seed says who starts.
type RoundRobin struct {
	seed      uint64
	fallbacks int
	turn      uint64
	last      []turn // by slot
}

// turn is when an endpoint instance was last picked, counted in decisions; 0: never.
type turn struct{ instance, at uint64 }

// NewRoundRobin returns the policy.
func NewRoundRobin(p router.Params) *RoundRobin {
	return &RoundRobin{seed: p.Seed, fallbacks: p.Fallbacks}
}

// Name implements [router.Policy].
func (*RoundRobin) Name() string { return "round-robin" }

// Route implements [router.Policy].
func (b *RoundRobin) Route(q *router.Query, d *router.Decision) error {
	d.Why.Size("score", nil, len(q.Keep))
	slots := q.Snap.Slots
	if len(b.last) < slots {
		b.last = append(b.last, make([]turn, slots-len(b.last))...)
	}
	n := 0
	d.Index = -1
	for i, k := range q.Keep {
		if !k {
			continue
		}
		n++
		s := &q.Snap.States[i]
		if v := &b.last[s.Slot]; v.instance != s.Instance {
			*v = turn{instance: s.Instance}
		}
		if d.Index < 0 || b.before(q, i, d.Index) {
			d.Index = i
		}
	}
	d.Propensity, d.Why.Reason = 1, router.ByRotation
	if n == 1 {
		d.Why.Reason = router.OnlyOne
	}
	b.turn++
	b.last[q.Snap.States[d.Index].Slot].at = b.turn
	b.next(q, d, n)
	return nil
}

// before reports whether i's turn is before j's: picked longer ago, or never and nearer to the start.
func (b *RoundRobin) before(q *router.Query, i, j int) bool {
	si, sj := q.Snap.States[i].Slot, q.Snap.States[j].Slot
	if b.last[si].at != b.last[sj].at {
		return b.last[si].at < b.last[sj].at
	}
	slots := q.Snap.Slots
	start := int(b.seed % uint64(slots))
	return (si-start+slots)%slots < (sj-start+slots)%slots
}

// next appends those whose turn comes next.
func (b *RoundRobin) next(q *router.Query, d *router.Decision, n int) {
	for len(d.Fallback) < min(b.fallbacks, n-1) {
		best := -1
	candidates:
		for i, k := range q.Keep {
			if !k || i == d.Index {
				continue
			}
			for _, f := range d.Fallback {
				if f == i {
					continue candidates
				}
			}
			if best < 0 || b.before(q, i, best) {
				best = i
			}
		}
		d.Fallback = append(d.Fallback, best)
	}
}

var _ router.Policy = (*RoundRobin)(nil)
