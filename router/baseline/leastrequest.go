package baseline

import "github.com/presage-router/presage/router"

// LeastRequest picks the endpoint with the fewest requests in flight, as the router itself counts
// them, a random one among equals.
type LeastRequest struct{ costs }

// NewLeastRequest returns the policy.
func NewLeastRequest(p router.Params) *LeastRequest {
	return &LeastRequest{newCosts(p, "requests", "requests")}
}

// Name implements [router.Policy].
func (*LeastRequest) Name() string { return "least-request" }

// Route implements [router.Policy].
func (b *LeastRequest) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	for i, k := range q.Keep {
		if k {
			b.set(d, i, float64(q.Snap.States[i].Requests))
		}
	}
	b.lowest(q, d)
	return nil
}

var _ router.Policy = (*LeastRequest)(nil)
