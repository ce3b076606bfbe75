package experiment

import "github.com/presage-router/presage/router"

// Parts returns the arms' policies, in order.
func (e *Experiment) Parts() []router.Policy {
	out := make([]router.Policy, len(e.opts.Arms))
	for i := range e.opts.Arms {
		out[i] = e.opts.Arms[i].Policy
	}
	return out
}

// Parts returns the policy that decides, then the shadows.
func (s *Shadow) Parts() []router.Policy {
	out := []router.Policy{s.in}
	for i := range s.shadows {
		out = append(out, s.shadows[i].Policy)
	}
	return out
}
