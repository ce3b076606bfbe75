package experiment

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// DefaultEvery is how many decisions there are to one that is shadowed.
const DefaultEvery = 16

// Shadow is the policy that it is around, and has others decide some of the same requests without
// effect. [NewShadow] makes it.
type Shadow struct {
	in      router.Policy
	every   uint64
	seed    uint64
	number  uint64 // touched by Route alone, as what follows
	shadows []shadow

	q    router.Query
	keep []bool
	hits []int32
	out  []string
}

// shadow is one policy that decides without effect.
type shadow struct {
	router.Policy
	rand *rand.Rand
	d    router.Decision

	decisions, agreed, failed, panics atomic.Uint64
	gains                             atomic.Uint64 // decisions that gain is the sum of
	gain                              atomic.Uint64 // bits of a float64, ms
}

// NewShadow puts policies, each for this purpose alone, in the shadow of another. Every is how many
// decisions there are to one that is shadowed, 0 for [DefaultEvery]; which ones and the shadows'
// draws depend on the seed.
func NewShadow(in router.Policy, shadows []router.Policy, every int, seed uint64) *Shadow {
	s := &Shadow{in: in, every: DefaultEvery, seed: seed, shadows: make([]shadow, len(shadows))}
	if every > 0 {
		s.every = uint64(every)
	}
	for i, p := range shadows {
		s.shadows[i].Policy = p
		s.shadows[i].rand = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	return s
}

// In returns the policy whose decisions count.
func (s *Shadow) In() router.Policy { return s.in }

// Name implements [router.Policy]: a shadow changes nothing, not even the name.
func (s *Shadow) Name() string { return s.in.Name() }

// Route implements [router.Policy].
func (s *Shadow) Route(q *router.Query, d *router.Decision) error {
	err := s.in.Route(q, d)
	s.number++
	if err != nil || mix(s.number^mix(s.seed))%s.every != 0 || d.Index < 0 || d.Index >= len(q.Keep) {
		return err
	}
	for i := range s.shadows {
		s.decide(&s.shadows[i], q, d.Index)
	}
	return nil
}

// decide has one shadow decide on copies of what it might change by mistake.
func (s *Shadow) decide(sh *shadow, q *router.Query, picked int) {
	defer func() {
		if recover() != nil {
			sh.panics.Add(1)
		}
	}()
	s.keep = append(s.keep[:0], q.Keep...)
	s.hits = append(s.hits[:0], q.Hits...)
	s.out = append(s.out[:0], q.Out...)
	s.q = *q
	s.q.Keep, s.q.Hits, s.q.Out, s.q.Rand = s.keep, s.hits, s.out, sh.rand
	sh.d.Reset()
	if err := sh.Route(&s.q, &sh.d); err != nil || sh.d.Index < 0 || sh.d.Index >= len(q.Keep) || !q.Keep[sh.d.Index] {
		sh.failed.Add(1)
		return
	}
	sh.decisions.Add(1)
	if sh.d.Index == picked {
		sh.agreed.Add(1)
	}
	w := &sh.d.Why
	if w.Unit != "ms" || len(w.Totals) != len(q.Keep) {
		return
	}
	if gain := float64(w.Totals[picked]) - float64(w.Totals[sh.d.Index]); !math.IsNaN(gain) && !math.IsInf(gain, 0) {
		sh.gains.Add(1)
		sh.gain.Store(math.Float64bits(math.Float64frombits(sh.gain.Load()) + gain))
	}
}

// Observe implements [router.Observer] for the policies within.
func (s *Shadow) Observe(o *features.Observation) {
	if x, ok := s.in.(router.Observer); ok {
		x.Observe(o)
	}
	for i := range s.shadows {
		if x, ok := s.shadows[i].Policy.(router.Observer); ok {
			s.shadows[i].guarded(func() { x.Observe(o) })
		}
	}
}

// Tick implements [router.Ticker] for the policies within.
func (s *Shadow) Tick(now time.Time, snap *fleet.Snapshot) {
	if x, ok := s.in.(router.Ticker); ok {
		x.Tick(now, snap)
	}
	for i := range s.shadows {
		if x, ok := s.shadows[i].Policy.(router.Ticker); ok {
			s.shadows[i].guarded(func() { x.Tick(now, snap) })
		}
	}
}

// guarded runs what a shadow does beside decisions.
func (sh *shadow) guarded(f func()) {
	defer func() {
		if recover() != nil {
			sh.panics.Add(1)
		}
	}()
	f()
}

// ShadowStatus is what a shadow's decisions came to.
type ShadowStatus struct {
	Policy    string
	Decisions uint64  // shadowed
	Agreed    uint64  // of these, with the same endpoint
	Failed    uint64  // it had no usable answer
	Panics    uint64  // none of them disturbed anybody
	Gains     uint64  // decisions with costs in ms
	Gain      float64 // ms, summed over these: by the shadow's own forecast, what its pick would have saved
}

// Report returns the status of every shadow.
func (s *Shadow) Report() []ShadowStatus {
	out := make([]ShadowStatus, len(s.shadows))
	for i := range s.shadows {
		sh := &s.shadows[i]
		out[i] = ShadowStatus{
			Policy: sh.Name(), Decisions: sh.decisions.Load(), Agreed: sh.agreed.Load(), Failed: sh.failed.Load(), Panics: sh.panics.Load(),
			Gains: sh.gains.Load(), Gain: math.Float64frombits(sh.gain.Load()),
		}
	}
	return out
}

var (
	_ router.Policy   = (*Shadow)(nil)
	_ router.Observer = (*Shadow)(nil)
	_ router.Ticker   = (*Shadow)(nil)
)
