package baseline

import "github.com/presage-router/presage/router"

// LMetric multiplies the prefill an endpoint would have ahead by the size of its batch (Zhang et
// al., "LMetric: Simple is Better", arXiv:2603.15202):
//
//	(uncached tokens in flight + own uncached tokens) * (requests in flight + 1)
//
// The batch counts the request to be placed: without it, all idle endpoints would tie at zero
// whatever they hold.
type LMetric struct{ costs }

// NewLMetric returns the policy.
func NewLMetric(p router.Params) *LMetric { return &LMetric{newCosts(p, "token-requests", "load")} }

// Name implements [router.Policy].
func (*LMetric) Name() string { return "lmetric" }

// Route implements [router.Policy].
func (b *LMetric) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	for i, k := range q.Keep {
		if k {
			s := &q.Snap.States[i]
			b.set(d, i, (float64(s.Uncached)+float64(q.UncachedTokens(i)))*(float64(s.Requests)+1))
		}
	}
	b.lowest(q, d)
	return nil
}

var _ router.Policy = (*LMetric)(nil)
