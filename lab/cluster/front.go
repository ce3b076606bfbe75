package cluster

import (
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/outlier"
)

// Peer is a further router before the same engines, as [Config] describes the first one: a policy of its
// own must be set; a fresh prefix index, no learner and no detector are the zero values.
type Peer struct {
	Policy   router.Policy
	Prefixes router.Prefixes
	Learner  *predictor.Learner
	Outliers *outlier.Detector
}

// front is one router with all that it knows.
type front struct {
	fleet    fleet.Fleet
	router   *router.Router
	seer     Seer
	ticker   router.Ticker  // the policy, where it is one
	snap     fleet.Snapshot // for it and the learner
	pupil    *pupil         // nil: nothing is learned
	prefixes router.Prefixes
	views    []view // by engine
}

// view is what a router knows of one engine.
type view struct {
	ref      fleet.Ref
	load     fleet.Load // the last page it got
	capacity int        // that its prefix index was told
	open     int32      // requests it has open there
}

// newFront makes router k. Endpoints are shared by all: nobody changes them.
func (s *sim) newFront(k int, p *Peer, endpoints []*fleet.Endpoint, blocks int) (*front, error) {
	f := &front{views: make([]view, len(endpoints))}
	ch, err := f.fleet.Sync(epoch(), endpoints)
	if err != nil {
		return nil, err
	}
	for i, r := range ch.Added {
		f.views[i].ref = r
	}
	cfg := &s.cfg
	switch {
	case cfg.NoPrefixes:
	case p.Prefixes != nil:
		f.prefixes = p.Prefixes
	default:
		f.prefixes = prefix.NewIndex(prefix.Options{Total: max(blocks, prefix.DefaultTotal)})
	}
	if f.seer = cfg.Seer; f.seer == nil {
		f.seer, _ = p.Policy.(Seer)
	}
	f.ticker, _ = p.Policy.(router.Ticker)
	o := router.Options{
		Fleet: &f.fleet, Policy: p.Policy, Prefixes: f.prefixes, Observer: cfg.Observer, Recorder: s,
		Outliers: p.Outliers, Forecast: cfg.Forecast, Seed: seedOf(cfg.Seed, "router", k),
	}
	if l := p.Learner; l != nil {
		f.fleet.Snapshot(epoch(), &f.snap)
		f.pupil = newPupil(l, &f.snap, cfg)
		o.Forecast = &f.pupil.handle
		o.Observer = router.Observers{f.pupil}
		if cfg.Observer != nil {
			o.Observer = router.Observers{f.pupil, cfg.Observer}
		}
	}
	f.router = router.New(o)
	return f, nil
}

// deal picks the router of a request.
func (s *sim) deal() *front {
	if len(s.fronts) == 1 {
		return s.fronts[0]
	}
	return s.fronts[s.dealer.IntN(len(s.fronts))]
}

// see shows a router's seer the engines as they are now.
func (s *sim) see(f *front, j *Job) {
	if f.seer == nil {
		return
	}
	for i := range s.nodes {
		s.advance(i)
	}
	f.seer.See(s.now, j, s.engines)
}

// tick tells a router's parts that pages have come.
func (s *sim) tick(f *front) {
	if f.ticker == nil && f.pupil == nil && s.cfg.Ticker == nil {
		return
	}
	f.fleet.Snapshot(s.time(), &f.snap)
	if f.ticker != nil {
		f.ticker.Tick(s.time(), &f.snap)
	}
	if t := s.cfg.Ticker; t != nil {
		t.Tick(s.time(), &f.snap)
	}
	if f.pupil != nil {
		f.pupil.watch(&f.snap)
	}
}

// sized is a belief that follows the sizes of the engines' caches.
type sized interface {
	SetCapacity(r fleet.Ref, blocks int)
}

func (s *sim) size(f *front, v *view) {
	if x, ok := f.prefixes.(sized); ok {
		if c := int(v.load.KVTokens()) / s.cfg.PrefixBlock; c != v.capacity {
			v.capacity = c
			x.SetCapacity(v.ref, c)
		}
	}
}

var _ sized = (*prefix.Index)(nil)
