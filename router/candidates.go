package router

import (
	"net/netip"
	"slices"

	"github.com/presage-router/presage/features/fleet"
)

// look takes the snapshot, the candidates and the prefix match.
func (r *Router) look(a *Ask) error {
	r.opts.Fleet.Snapshot(a.Now, &r.snap)
	n := len(r.snap.States)
	r.keep, r.hits, r.out = zeroed(r.keep, n), zeroed(r.hits, n), zeroed(r.out, n)
	if err := r.candidates(a); err != nil {
		return err
	}
	r.try = -1
	if o := r.opts.Outliers; o != nil {
		r.try = o.Screen(a.Now, &r.snap, a.Req.Stream, r.rand, r.keep, r.out)
	}
	if r.opts.Prefixes != nil && len(a.Req.Blocks) > 0 {
		r.opts.Prefixes.Match(a.Req.Blocks, &r.snap, r.hits)
	}
	r.q = Query{Now: a.Now, Req: a.Req, Snap: &r.snap, Hits: r.hits, Keep: r.keep, Out: r.out, Rand: r.rand, fore: &r.fore}
	r.fore.frozen, r.fore.done = nil, false
	if h := r.opts.Forecast; h != nil {
		r.fore.frozen = h.Load()
	}
	if n := len(a.Req.Blocks); n > 0 {
		r.q.Tie = a.Req.Blocks[n-1]
	} else {
		r.q.Tie = r.rand.Uint64()
	}
	return nil
}

// candidates sets keep and out: the ready endpoints that serve the model, or all ready ones when
// none does and unknown models are routed anywhere. A model name that only adapters bear becomes the
// request's adapter.
func (r *Router) candidates(a *Ask) error {
	var ready, serving, bases, adapters int
	model := a.Req.Target()
	for i := range r.snap.States {
		s := &r.snap.States[i]
		if r.out[i] = barred(s, a); r.out[i] != "" {
			continue
		}
		ready++
		ok, adapter := serves(s, model)
		switch {
		case !ok:
			r.out[i] = "model"
			continue
		case adapter:
			adapters++
		case s.Model == model:
			bases++
		}
		serving++
		r.keep[i] = true
	}
	switch {
	case ready == 0:
		return ErrNoEndpoint
	case serving > 0:
	case r.opts.Strict:
		return ErrUnknownModel
	default:
		for i, why := range r.out {
			if why == "model" {
				r.keep[i], r.out[i] = true, ""
			}
		}
	}
	if a.Req.Adapter == "" && adapters > 0 && bases == 0 {
		a.Req.Adapter = model
	}
	return nil
}

// barred says why an endpoint takes no such request whatever its model, or "".
func barred(s *fleet.State, a *Ask) string {
	switch {
	case s.Drain:
		return "draining"
	case s.Role == fleet.RolePrefill:
		return "prefill only"
	case a.Narrow && !inSubset(s.Addr, a.Subset):
		return "subset"
	}
	return ""
}

// serves reports whether the endpoint answers for a model name, and whether as an adapter: one
// configured by the operator, or one that the engine's page shows.
func serves(s *fleet.State, model string) (ok, adapter bool) {
	switch {
	case model == "" || s.Model == model:
		return true, false
	case slices.Contains(s.Adapters, model), holdsAdapter(s, model):
		return true, true
	}
	return s.Model == "", false
}

// holdsAdapter reports whether the engine's page shows the adapter, running or waiting.
func holdsAdapter(s *fleet.State, name string) bool {
	return s.Known.Has(fleet.KnowLoRA) && (slices.Contains(s.RunningLoRA, name) || slices.Contains(s.WaitingLoRA, name))
}

func inSubset(a netip.AddrPort, subset []netip.AddrPort) bool {
	for _, s := range subset {
		if s.Addr() == a.Addr() && (s.Port() == 0 || s.Port() == a.Port()) {
			return true
		}
	}
	return false
}
