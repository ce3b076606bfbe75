package router

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
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
// the goroutine that ended it, must not block, and must copy what it keeps.
type Observer interface {
	Observe(o *features.Observation)
}

// Recorder receives every decision while its query is still valid, under the decision lock: it
// must copy what it keeps, quickly.
type Recorder interface {
	Record(id ID, q *Query, d *Decision)
}

// Options are what a Router is made of. Fleet and Policy must be set.
type Options struct {
	Fleet    *fleet.Fleet
	Policy   Policy
	Prefixes Prefixes        // nil: no endpoint ever holds anything
	Ratios   *request.Ratios // nil: prompt lengths are taken as parsed
	Observer Observer        // nil: none
	Recorder Recorder        // nil: none
	Seed     uint64          // of every random draw of policies; equal seeds, equal draws
	Strict   bool            // refuse models that no endpoint serves instead of routing them anywhere
}

// Router makes decisions, one at a time. Its methods are safe for concurrent use.
type Router struct {
	opts   Options
	policy atomic.Pointer[Policy]
	nextID atomic.Uint64
	epoch  uint32 // random part of decision ids

	Fallbacks atomic.Uint64 // decisions the policy failed to make: panic, or a pick outside the candidates

	mu   sync.Mutex // the decision lock; guards what follows
	snap fleet.Snapshot
	hits []int32
	keep []bool
	rand *rand.Rand
	q    Query
}

// New returns a Router.
func New(o Options) *Router {
	r := &Router{opts: o, rand: rand.New(rand.NewPCG(o.Seed, 0x9e3779b97f4a7c15))}
	r.epoch = r.rand.Uint32()
	r.policy.Store(&o.Policy)
	return r
}

// Policy returns the policy in force.
func (r *Router) Policy() Policy { return *r.policy.Load() }

// SetPolicy swaps the policy; the next decision uses it.
func (r *Router) SetPolicy(p Policy) { r.policy.Store(&p) }

// Fleet returns the fleet that is routed over.
func (r *Router) Fleet() *fleet.Fleet { return r.opts.Fleet }

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

// look takes the snapshot, the candidates and the prefix match.
func (r *Router) look(a *Ask) error {
	r.opts.Fleet.Snapshot(a.Now, &r.snap)
	n := len(r.snap.States)
	r.keep, r.hits = zeroed(r.keep, n), zeroed(r.hits, n)
	ready, serving := 0, 0
	for i := range r.snap.States {
		s := &r.snap.States[i]
		if s.Drain || s.Role == fleet.RolePrefill || (a.Narrow && !inSubset(s.Addr, a.Subset)) {
			continue
		}
		ready++
		if r.keep[i] = serves(s, a.Req.Model); r.keep[i] {
			serving++
		}
	}
	switch {
	case ready == 0:
		return ErrNoEndpoint
	case serving > 0:
	case r.opts.Strict && a.Req.Model != "":
		return ErrUnknownModel
	default:
		for i := range r.snap.States {
			s := &r.snap.States[i]
			r.keep[i] = !s.Drain && s.Role != fleet.RolePrefill && (!a.Narrow || inSubset(s.Addr, a.Subset))
		}
	}
	if r.opts.Prefixes != nil && len(a.Req.Blocks) > 0 {
		r.opts.Prefixes.Match(a.Req.Blocks, &r.snap, r.hits)
	}
	r.q = Query{Now: a.Now, Req: a.Req, Snap: &r.snap, Hits: r.hits, Keep: r.keep, Rand: r.rand}
	if n := len(a.Req.Blocks); n > 0 {
		r.q.Tie = a.Req.Blocks[n-1]
	} else {
		r.q.Tie = r.rand.Uint64()
	}
	return nil
}

// decide asks the policy, and the plain rule of fewest requests in flight where it fails.
func (r *Router) decide(d *Decision) error {
	ok, err := r.ask(d)
	if ok {
		return err
	}
	r.Fallbacks.Add(1)
	d.Reset()
	for i, k := range r.keep {
		if k && (d.Index < 0 || r.snap.States[i].Requests < r.snap.States[d.Index].Requests) {
			d.Index = i
		}
	}
	d.Policy, d.Propensity = "fallback", 1
	d.Why.Reason = ByFallback
	return nil
}

// ask runs the policy and reports whether its answer can be used: no panic, a candidate picked with
// a probability in (0,1].
func (r *Router) ask(d *Decision) (ok bool, err error) {
	defer func() {
		if recover() != nil {
			ok, err = false, nil
		}
	}()
	p := r.Policy()
	if err = p.Route(&r.q, d); err != nil {
		return true, err
	}
	if d.Policy == "" {
		d.Policy = p.Name()
	}
	return d.Index >= 0 && d.Index < len(r.keep) && r.keep[d.Index] && d.Propensity > 0 && d.Propensity <= 1, nil
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
	if r.opts.Recorder != nil {
		r.opts.Recorder.Record(id, &r.q, d)
	}
	f.begin(r, a, id, ref, ticket)
	if r.opts.Prefixes != nil && len(a.Req.Blocks) > 0 {
		r.opts.Prefixes.Insert(ref, a.Req.Blocks)
	}
	return true
}

func serves(s *fleet.State, model string) bool {
	if model == "" || s.Serves(model) {
		return true
	}
	if !s.Known.Has(fleet.KnowLoRA) {
		return false
	}
	return contains(s.RunningLoRA, model) || contains(s.WaitingLoRA, model)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func inSubset(a netip.AddrPort, subset []netip.AddrPort) bool {
	for _, s := range subset {
		if s.Addr() == a.Addr() && (s.Port() == 0 || s.Port() == a.Port()) {
			return true
		}
	}
	return false
}
