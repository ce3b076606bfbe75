package baseline

import "github.com/presage-router/presage/router"

// AlwaysBusiest picks the endpoint with the most requests in flight, a random one among equals. It
// is the negative control: a comparison in which it does not lose measures nothing.
type AlwaysBusiest struct{ costs }

// NewAlwaysBusiest returns the policy.
func NewAlwaysBusiest(p router.Params) *AlwaysBusiest {
	return &AlwaysBusiest{newCosts(p, "score", "requests")}
}

// Name implements [router.Policy].
func (*AlwaysBusiest) Name() string { return "always-busiest" }

// Route implements [router.Policy].
func (b *AlwaysBusiest) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	for i, k := range q.Keep {
		if k {
			b.set(d, i, float64(q.Snap.States[i].Requests))
		}
	}
	b.lowest(q, d)
	if d.Why.Reason == router.ByQueue {
		d.Why.Reason = router.NoReason // more work ahead is no reason anybody should read
	}
	return nil
}

var _ router.Policy = (*AlwaysBusiest)(nil)
