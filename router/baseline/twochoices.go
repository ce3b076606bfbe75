package baseline

import "github.com/presage-router/presage/router"

// TwoChoices draws two distinct endpoints and takes the one with fewer requests in flight, either
// with equal probability when they have the same (power of two choices, Mitzenmacher 2001).
type TwoChoices struct{ costs }

// NewTwoChoices returns the policy.
func NewTwoChoices(p router.Params) *TwoChoices {
	return &TwoChoices{newCosts(p, "requests", "requests")}
}

// Name implements [router.Policy].
func (*TwoChoices) Name() string { return "p2c" }

// Route implements [router.Policy].
func (b *TwoChoices) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	n := 0
	for i, k := range q.Keep {
		if k {
			n++
			b.set(d, i, float64(q.Snap.States[i].Requests))
		}
	}
	if n == 1 {
		b.lowest(q, d)
		return nil
	}
	first := q.Rand.IntN(n)
	second := q.Rand.IntN(n - 1)
	if second >= first {
		second++
	}
	x, y := b.nth(first), b.nth(second)
	if b.cost[y] < b.cost[x] || b.cost[y] == b.cost[x] && q.Rand.IntN(2) == 1 {
		x, y = y, x
	}
	d.Index, d.Propensity = x, b.chance(x, n)
	d.Why.Reason = router.ByDraw
	if b.fallbacks > 0 {
		d.Fallback = append(d.Fallback, y)
	}
	d.Rank(q, b.keep, b.fallbacks)
	return nil
}

// chance is the probability that the policy picks x among n candidates: the pair must be x and one
// that is worse, or one that is equal and loses the toss, of n(n-1)/2 pairs.
func (b *TwoChoices) chance(x, n int) float64 {
	wins := 0.0
	for i, k := range b.keep {
		switch {
		case !k || i == x:
		case b.cost[i] > b.cost[x]:
			wins++
		case b.cost[i] == b.cost[x]:
			wins += 0.5
		}
	}
	return wins / (float64(n) * float64(n-1) / 2)
}

// nth returns the n-th candidate.
func (b *TwoChoices) nth(n int) int {
	for i, k := range b.keep {
		if k {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return -1
}

var _ router.Policy = (*TwoChoices)(nil)
