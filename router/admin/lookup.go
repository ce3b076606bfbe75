package admin

import (
	"slices"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// Get returns the decision of that id, or nil when it is not kept.
func (r *Ring) Get(id router.ID) *Explained {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.full.inOrder(id); h != nil {
		return r.explain(&r.full, h)
	}
	for _, s := range []*shelf{&r.kept, &r.brief} {
		if h := s.anywhere(id); h != nil {
			return r.explain(s, h)
		}
	}
	return nil
}

// Last returns the newest decision, or nil when there is none.
func (r *Ring) Last() *Explained {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.full.newest(); h != nil {
		return r.explain(&r.full, h)
	}
	return nil
}

// Worst returns up to n ended decisions of those kept, the ones first whose time to first token was
// longest: relative to their SLO where they carry one, to a second where not.
func (r *Ring) Worst(n int) []*Explained {
	type found struct {
		id   router.ID
		time float64
	}
	var all []found
	for _, s := range []*shelf{&r.full, &r.kept, &r.brief} {
		// A few at a time: decisions must not wait for somebody who reads.
		for from := 0; ; from += scanStep {
			r.mu.Lock()
			to := min(from+scanStep, s.count)
			for i := from; i < to; i++ {
				if h := s.at(i); h.out.cause != fleet.Open && h.out.ttft > 0 {
					all = append(all, found{h.id, h.slowness()})
				}
			}
			r.mu.Unlock()
			if to < from+scanStep {
				break
			}
		}
		slices.SortFunc(all, func(a, b found) int {
			switch {
			case a.time != b.time:
				return cmpDown(a.time, b.time)
			case a.id != b.id:
				return cmpDown(float64(a.id.Seq()), float64(b.id.Seq()))
			}
			return 0
		})
		all = slices.Compact(all)
		all = all[:min(len(all), max(n, 0))]
	}
	out := []*Explained{}
	for _, f := range all {
		if x := r.Get(f.id); x != nil {
			out = append(out, x)
		}
	}
	return out
}

const scanStep = 512

func cmpDown(a, b float64) int {
	if a > b {
		return -1
	}
	return 1
}

func (h *head) slowness() float64 {
	limit := 1.0
	if h.slo.TTFT > 0 {
		limit = h.slo.TTFT.Seconds()
	}
	return h.out.ttft.Seconds() / limit
}
