package predictive

import "github.com/presage-router/presage/router"

// weigh returns the weights for a request. One of negative priority (batch work, by the operator's
// word) yields: what it inflicts counts more and what it gets counts less. So it gathers where few
// stream, away from those who are in a hurry, who find such endpoints slow and leave them to it. It is
// the request's own priority that counts, never that of others.
func (p *Policy) weigh(q *router.Query) Weights {
	w := p.w
	if q.Req.Priority < 0 && w.Yield > 1 {
		w.Decode /= w.Yield
		w.Stall *= w.Yield
	}
	return w
}
