package router

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router/outlier"
)

// Prefixes says which endpoint holds which prefix blocks. All methods are safe for concurrent use
// and ignore instances that have left. prefix.Index is the one that serves.
type Prefixes interface {
	// Match sets hits[i] to the number of leading blocks that snap.States[i] is believed to hold.
	Match(blocks []uint64, snap *fleet.Snapshot, hits []int32)
	// Insert notes that the instance computes, or already holds, all of blocks.
	Insert(r fleet.Ref, blocks []uint64)
	// Correct notes that the engine held only the first held of blocks when it started on them,
	// where the index had claimed the first claimed ones.
	Correct(r fleet.Ref, blocks []uint64, held, claimed int)
	// Withdraw takes back blocks beyond the first held: the request failed before its prefill.
	Withdraw(r fleet.Ref, blocks []uint64, held int)
}

// Observer receives the record of every finished request. Observe is called once per request, from
// the goroutine that ended it, must not block, and must copy what it keeps. A [Policy] that is an
// Observer too gets every record while it is in force.
type Observer interface {
	Observe(o *features.Observation)
}

// FirstObserver is an [Observer] that also wants to know of first tokens as they come: o.TTFT is set,
// nothing of the end. The same rules hold.
type FirstObserver interface {
	First(o *features.Observation)
}

// Recorder receives every decision while its query is still valid, under the decision lock: it
// must copy what it keeps, quickly.
type Recorder interface {
	Record(id ID, q *Query, d *Decision)
}

// Observers passes every record to each of them, in order.
type Observers []Observer

// Observe implements [Observer].
func (os Observers) Observe(o *features.Observation) {
	for _, x := range os {
		x.Observe(o)
	}
}

// Recorders passes every decision to each of them, in order.
type Recorders []Recorder

// First implements [FirstObserver].
func (os Observers) First(o *features.Observation) {
	for _, x := range os {
		if f, ok := x.(FirstObserver); ok {
			f.First(o)
		}
	}
}

// Record implements [Recorder].
func (rs Recorders) Record(id ID, q *Query, d *Decision) {
	for _, x := range rs {
		x.Record(id, q, d)
	}
}

// Options are what a Router is made of. Fleet and Policy must be set.
type Options struct {
	Fleet    *fleet.Fleet
	Policy   Policy
	Prefixes Prefixes          // nil: no endpoint ever holds anything
	Ratios   *request.Ratios   // nil: prompt lengths are taken as parsed
	Observer Observer          // nil: none
	Recorder Recorder          // nil: none
	Outliers *outlier.Detector // nil: no endpoint is ever kept out for how it works
	Forecast *predictor.Handle // nil: nothing is foretold
	Seed     uint64            // of every random draw of policies; equal seeds, equal draws
	Strict   bool              // refuse models that no endpoint serves instead of routing them anywhere
}

// Router makes decisions, one at a time. Its methods are safe for concurrent use.
type Router struct {
	opts   Options
	policy atomic.Pointer[Policy]
	nextID atomic.Uint64
	epoch  uint32 // random part of decision ids
	salt   uint64 // of the hashes of sessions in records

	Fallbacks atomic.Uint64 // decisions the policy failed to make: see [Decision.Failure]
	lastPanic atomic.Pointer[string]

	mu   sync.Mutex // the decision lock; guards what follows
	snap fleet.Snapshot
	hits []int32
	keep []bool
	out  []string
	rand *rand.Rand
	q    Query
	fore foretelling
	try  int // the endpoint to be tried out by this decision, or -1
}

// New returns a Router.
func New(o Options) *Router {
	r := &Router{opts: o, rand: rand.New(rand.NewPCG(o.Seed, 0x9e3779b97f4a7c15))}
	r.epoch = r.rand.Uint32()
	r.salt = rand.New(rand.NewPCG(o.Seed, 0x5851f42d4c957f2d)).Uint64() // a stream of its own
	r.policy.Store(&o.Policy)
	return r
}

// Policy returns the policy in force.
func (r *Router) Policy() Policy { return *r.policy.Load() }

// SetPolicy swaps the policy; the next decision uses it.
func (r *Router) SetPolicy(p Policy) { r.policy.Store(&p) }

// SetStrict changes [Options.Strict]; the next decision sees it.
func (r *Router) SetStrict(strict bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opts.Strict = strict
}

// LastPanic returns what the last panic of a policy said, after the policy's name; empty: none did.
func (r *Router) LastPanic() string {
	if p := r.lastPanic.Load(); p != nil {
		return *p
	}
	return ""
}

// Fleet returns the fleet that is routed over.
func (r *Router) Fleet() *fleet.Fleet { return r.opts.Fleet }

// Outliers returns what keeps endpoints out that do not work, or nil.
func (r *Router) Outliers() *outlier.Detector { return r.opts.Outliers }

// Ask is one request to be routed.
type Ask struct {
	Now    time.Time
	Req    *request.Request
	Subset []netip.AddrPort // the gateway's choice of endpoints; port 0 means any port of the address
	Narrow bool             // Subset is in force, even when empty
}

// Route decides, reserves the work and fills f, which must be fresh or [Flight.Reset]. Errors are
// [ErrNoEndpoint], [ErrUnknownModel], [ErrSaturated] or the policy's own; nothing is reserved then.
func (r *Router) Route(a *Ask, f *Flight) error {
	if rt := r.opts.Ratios; rt != nil && !a.Req.ExactTokens {
		a.Req.PromptTokens = rt.Estimate(a.Req.Model, a.Req.PromptBytes)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A decision on an endpoint that leaves between the snapshot and the reservation is repeated.
	for range 4 {
		if err := r.look(a); err != nil {
			return err
		}
		f.Decision.Reset()
		if err := r.decide(&f.Decision); err != nil {
			return err
		}
		if r.reserve(a, f) {
			return nil
		}
	}
	return ErrNoEndpoint
}

// decide asks the policy, and the plain rule of fewest requests in flight where it fails.
func (r *Router) decide(d *Decision) error {
	failed, failure, err := r.ask(d)
	if failure != "" {
		r.Fallbacks.Add(1)
		arm := d.Arm
		d.Reset()
		r.q.fewest(d)
		d.Arm = arm // its failure is part of what the arm does
		d.Policy, d.Failed, d.Failure = "fallback", failed, failure
		d.Why.Reason = ByFallback
		err = nil
	}
	d.Why.leftOut(r.out)
	if err == nil && r.try >= 0 {
		r.probe(d)
	}
	return err
}

// probe sends the request to the endpoint that is to be tried out. The policy's own pick is the next
// to be asked; the decision belongs to no policy and no arm.
func (r *Router) probe(d *Decision) {
	d.Fallback = slices.Insert(d.Fallback, 0, d.Index)
	d.Policy, d.Arm, d.Index, d.Propensity = "probe", "", r.try, 1
	d.Why.Reason = ByExplore
	r.keep[r.try], r.out[r.try] = true, ""
	if len(d.Why.Filtered) == len(r.out) {
		d.Why.Filtered[r.try] = ""
	}
}

// ask runs the policy. Its answer can be used unless failure says why not: it panicked, or did not
// pick a candidate with a probability in (0,1].
func (r *Router) ask(d *Decision) (name, failure string, err error) {
	defer func() {
		if p := recover(); p != nil {
			failure = "panic"
			if d.Policy != "" {
				name = d.Policy // a part of a composed policy
			}
			text := fmt.Sprintf("%s: %v", name, p)
			r.lastPanic.Store(&text)
		}
	}()
	p := r.Policy()
	name = p.Name()
	err = p.Route(&r.q, d)
	if d.Policy == "" {
		d.Policy = name
	}
	name = d.Policy
	if err != nil {
		return name, "", err
	}
	switch {
	case d.Index < 0 || d.Index >= len(r.keep) || !r.keep[d.Index]:
		return name, "invalid", nil
	case !(d.Propensity > 0 && d.Propensity <= 1): //nolint:staticcheck // NaN must fail too
		return name, "nan", nil
	}
	d.Fallback = slices.DeleteFunc(d.Fallback, func(i int) bool {
		return i < 0 || i >= len(r.keep) || !r.keep[i] || i == d.Index
	})
	return name, "", nil
}

// reserve binds the decision to its endpoint: the ledger, the index and the flight.
func (r *Router) reserve(a *Ask, f *Flight) bool {
	d := &f.Decision
	s := &r.snap.States[d.Index]
	ref := fleet.Ref{Slot: s.Slot, Instance: s.Instance, Endpoint: s.Endpoint}
	ticket, ok := r.opts.Fleet.Begin(a.Now, ref, r.q.Work(d.Index))
	if !ok {
		return false
	}
	id := ID{epoch: r.epoch, n: r.nextID.Add(1)}
	f.begin(r, a, id, ref, ticket)
	if r.opts.Recorder != nil {
		r.opts.Recorder.Record(id, &r.q, d)
	}
	f.dispatched()
	if r.opts.Prefixes != nil && len(a.Req.Blocks) > 0 {
		r.opts.Prefixes.Insert(ref, a.Req.Blocks)
	}
	return true
}

var (
	_ Observer      = Observers(nil)
	_ FirstObserver = Observers(nil)
	_ Recorder      = Recorders(nil)
)
