package predictive

import "github.com/presage-router/presage/router"

// weights are those of the terms for one request.
type weights struct{ decode, stall float64 }

// weigh returns the weights for a request. One of negative priority (batch work, by the operator's
// word) yields: what it inflicts counts more and what it gets counts less. So it gathers where few
// stream, away from those who are in a hurry, who find such endpoints slow and leave them to it. It is
// the request's own priority that counts, never that of others.
func (p *Policy) weigh(q *router.Query) weights {
	if q.Req.Priority < 0 && p.w.Yield > 1 {
		return weights{decode: p.w.Decode / p.w.Yield, stall: p.w.Stall * p.w.Yield}
	}
	return weights{decode: p.w.Decode, stall: p.w.Stall}
}
