package adaptive

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// Policy is a profile of scorers whose weights follow the detectors. It serves one router; [New]
// makes it. Tick, Status and Changes may be called beside Route, from any goroutine.
type Policy struct {
	name    string
	profile *router.Profile
	opts    Options
	ladder  []rung
	now     atomic.Pointer[rung] // the weights in force
	applied *rung                // those the profile has; touched by Route alone

	picks, changed atomic.Uint64 // decisions by scores, and those that static weights would have made otherwise

	mu       sync.Mutex // guards what follows
	watched  []watched
	asked    asked
	sample   Sample
	last     time.Time // of the last look
	flight   int64     // requests in flight then
	regime   router.Category
	switches [2]uint64 // by the regime they led to
	log      changes
}

// Of looks between ticks: the requests in flight must have grown by a quarter, and half a request per
// endpoint, since the last look, and that one be some time ago.
const (
	lookGrowth = 4
	lookPause  = 10 * time.Millisecond
)

// New makes the policy. Errors name the option and the value that are wrong.
func New(o Options) (*Policy, error) {
	if o.Name == "" {
		o.Name = "adaptive"
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	static := make([]float64, len(o.Scorers))
	scorers := make([]router.Scorer, len(o.Scorers))
	for t, p := range o.Scorers {
		scorers[t], static[t] = p.Scorer, o.Static[p.Scorer.Name()]
	}
	p := &Policy{name: o.Name, opts: o}
	var err error
	if p.ladder, err = newLadder(&o.Curve, o.Scorers, static); err != nil {
		return nil, err
	}
	rest := &p.ladder[climb(&o.Curve, -1, o.Curve.Share(0))]
	p.now.Store(rest)
	p.applied = rest
	weights := append([]float64(nil), rest.weights...)
	p.profile, err = router.Compose(o.Name, router.Parts{Filters: o.Filters, Scorers: scorers, Weights: weights, Fallbacks: o.Fallbacks})
	if err != nil {
		return nil, err
	}
	for _, w := range o.Watches {
		p.watched = append(p.watched, watched{Watch: w})
	}
	p.log.init(len(o.Watches))
	return p, nil
}

// Name implements [router.Policy].
func (p *Policy) Name() string { return p.name }

// Route implements [router.Policy].
func (p *Policy) Route(q *router.Query, d *router.Decision) error {
	p.arrive(q)
	r := p.now.Load()
	if r != p.applied {
		if err := p.profile.SetWeights(r.weights); err != nil {
			return err
		}
		p.applied = r
	}
	if err := p.profile.Route(q, d); err != nil {
		return err
	}
	if d.Why.Reason != router.ByExplore {
		p.picks.Add(1)
		if r.differs(&d.Why, d.Index, q.Keep) {
			p.changed.Add(1)
		}
	}
	return nil
}

// differs reports whether the static weights would have picked another endpoint: whether one that
// was not filtered out has a higher static score than the picked one.
func (r *rung) differs(why *router.Explanation, picked int, keep []bool) bool {
	mine := r.fixed(why.Row(picked))
	for i, k := range keep {
		if k && why.Filtered[i] == "" && r.fixed(why.Row(i)) > mine+1e-5 {
			return true
		}
	}
	return false
}

// fixed is the score under static weights of an endpoint with these terms.
func (r *rung) fixed(terms []float32) float64 {
	sum := 0.0
	for t, v := range terms {
		sum += float64(v) * r.static[t]
	}
	return sum
}

// arrive notes a request, and has a look if a wave is coming in.
func (p *Policy) arrive(q *router.Query) {
	var flight, serves int64
	for i := range q.Snap.States {
		if s := &q.Snap.States[i]; serving(s) {
			flight += int64(s.Requests)
			serves++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked.note(q)
	if flight-p.flight > p.flight/lookGrowth+serves/2 && q.Now.Sub(p.last) >= lookPause {
		p.look(q.Now, q.Snap, flight)
	}
}

// Tick implements [router.Ticker].
func (p *Policy) Tick(now time.Time, s *fleet.Snapshot) {
	var flight int64
	for i := range s.States {
		if st := &s.States[i]; serving(st) {
			flight += int64(st.Requests)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look(now, s, flight)
}

// look runs the detectors and moves the weights. The caller holds p.mu.
func (p *Policy) look(now time.Time, s *fleet.Snapshot, flight int64) {
	elapsed := now.Sub(p.last)
	if p.last.IsZero() || elapsed <= 0 {
		if p.last.IsZero() {
			p.last, p.flight = now, flight
		}
		return
	}
	p.sample = Sample{
		Now: now, Elapsed: elapsed, Snap: s, Arrivals: p.asked.arrivals, Prompt: p.asked.prompt, Cached: p.asked.cached,
		PeakPrefill: p.opts.PeakPrefill,
	}
	p.last, p.flight, p.asked = now, flight, asked{}
	x, regime := 0.0, router.Affinity
	cause, most := -1, 0.0
	for i := range p.watched {
		w := &p.watched[i]
		w.step(now, w.Detector.Detect(&p.sample), elapsed)
		push := w.push()
		x += push
		if w.active && w.Toward == router.Distribution {
			regime = router.Distribution
		}
		if d := push - p.log.pushed(i); cause < 0 || d*d > most*most {
			cause, most = i, d
		}
	}
	p.sample.Snap = nil
	old := p.now.Load()
	next := &p.ladder[climb(&p.opts.Curve, old.at, p.opts.Curve.Share(x))]
	if next == old && regime == p.regime {
		return
	}
	p.now.Store(next)
	if regime != p.regime {
		p.switches[regime]++
	}
	p.log.add(now, p.regime, regime, old, next, p.watched, cause, most > 0)
	p.regime = regime
}

// Of returns the adaptive policy that p is, or the first one among the parts of a composed p, an
// experiment or a shadow; nil if there is none.
func Of(p router.Policy) *Policy {
	switch p := p.(type) {
	case *Policy:
		return p
	case interface{ Parts() []router.Policy }:
		for _, part := range p.Parts() {
			if a := Of(part); a != nil {
				return a
			}
		}
	}
	return nil
}

var (
	_ router.Policy = (*Policy)(nil)
	_ router.Ticker = (*Policy)(nil)
)
