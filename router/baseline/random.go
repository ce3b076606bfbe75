package baseline

import "github.com/presage-router/presage/router"

// Random picks uniformly at random.
type Random struct {
	fallbacks int
	order     []int
}

// NewRandom returns the policy.
func NewRandom(p router.Params) *Random { return &Random{fallbacks: p.Fallbacks} }

// Name implements [router.Policy].
func (*Random) Name() string { return "random" }

// Route implements [router.Policy]: the first places of a random order of the candidates are the
// pick and its fallbacks.
func (b *Random) Route(q *router.Query, d *router.Decision) error {
	d.Why.Size("score", nil, len(q.Keep))
	b.order = b.order[:0]
	for i, k := range q.Keep {
		if k {
			b.order = append(b.order, i)
		}
	}
	n := len(b.order)
	for i := range min(n, 1+b.fallbacks) {
		j := i + q.Rand.IntN(n-i)
		b.order[i], b.order[j] = b.order[j], b.order[i]
	}
	d.Index, d.Propensity = b.order[0], 1/float64(n)
	d.Fallback = append(d.Fallback, b.order[1:min(n, 1+b.fallbacks)]...)
	d.Why.Reason = router.ByDraw
	if n == 1 {
		d.Why.Reason = router.OnlyOne
	}
	return nil
}

var _ router.Policy = (*Random)(nil)
