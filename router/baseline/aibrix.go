package baseline

import (
	"math"

	"github.com/presage-router/presage/router"
)

// Published defaults of AIBrix's prefix-cache routing.
var (
	aibrixImbalance = router.Knob{Name: "imbalance", About: "requests between the busiest and the idlest above which only the idlest count", Default: 8, Low: 0, High: 1e5}
	aibrixSigmas    = router.Knob{Name: "sigmas", About: "standard deviations above the mean load that a match may be", Default: 1, Low: 0, High: 100}
)

// AIBrixPrefix is AIBrix's prefix-cache routing. Of the candidates (only the idlest ones when load
// differs by more than 8 requests) that hold some of the prompt, by match, then by requests in
// flight, it takes the first whose load is at most the mean plus one standard deviation; if there is
// none, the fewest requests in flight, a random one among equals. Mean and deviation are those of
// all candidates.
type AIBrixPrefix struct {
	costs
	imbalance, sigmas float64
}

// NewAIBrixPrefix returns the policy.
func NewAIBrixPrefix(p router.Params) *AIBrixPrefix {
	return &AIBrixPrefix{newCosts(p, "requests", "requests"), p.Knob(aibrixImbalance), p.Knob(aibrixSigmas)}
}

// Name implements [router.Policy].
func (*AIBrixPrefix) Name() string { return "aibrix-prefix" }

// Route implements [router.Policy].
func (b *AIBrixPrefix) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	n, sum, squares := 0.0, 0.0, 0.0
	fewest, most := math.Inf(1), math.Inf(-1)
	for i, k := range q.Keep {
		if !k {
			continue
		}
		load := float64(q.Snap.States[i].Requests)
		b.set(d, i, load)
		n, sum, squares = n+1, sum+load, squares+load*load
		fewest, most = min(fewest, load), max(most, load)
	}
	uneven := most-fewest > b.imbalance
	if uneven {
		for i, k := range q.Keep {
			if k && b.cost[i] > fewest {
				b.drop(d, i, "imbalance")
			}
		}
	}
	mean := sum / n
	limit := mean + b.sigmas*math.Sqrt(max(0, squares/n-mean*mean))
	if !b.match(q, d, limit) {
		b.lowest(q, d)
	}
	if uneven && d.Why.Reason == router.OnlyOne {
		d.Why.Reason = router.ByQueue // the only one of several that is left
	}
	return nil
}

// match picks the longest match within the limit of load: among equals the least loaded, then a
// random one. It reports whether there is one.
func (b *AIBrixPrefix) match(q *router.Query, d *router.Decision, limit float64) bool {
	best, ties, kept := -1, 0, 0
	for i, k := range b.keep {
		if !k {
			continue
		}
		kept++
		if q.Hits[i] == 0 || b.cost[i] > limit {
			continue
		}
		switch {
		case best < 0 || q.Hits[i] > q.Hits[best] || q.Hits[i] == q.Hits[best] && b.cost[i] < b.cost[best]:
			best, ties = i, 1
		case q.Hits[i] == q.Hits[best] && b.cost[i] == b.cost[best]:
			ties++
		}
	}
	if best < 0 {
		return false
	}
	nth := q.Rand.IntN(ties)
	for i, k := range b.keep {
		if !k || q.Hits[i] != q.Hits[best] || b.cost[i] != b.cost[best] {
			continue
		}
		if nth == 0 {
			d.Index, d.Propensity = i, 1/float64(ties)
			break
		}
		nth--
	}
	d.Why.Reason = router.ByCache
	if kept == 1 {
		d.Why.Reason = router.OnlyOne
	}
	d.Rank(q, b.keep, b.fallbacks)
	return true
}

var _ router.Policy = (*AIBrixPrefix)(nil)
