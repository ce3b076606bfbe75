package baseline

import "github.com/presage-router/presage/router"

// Published defaults of SMG's command line (its library has .5, 32, 1.1).
var (
	smgMatch    = router.Knob{Name: "match", About: "share of the prompt above which the match decides", Default: 0.3, Low: 0, High: 1}
	smgAbsolute = router.Knob{Name: "absolute", About: "requests between the busiest and the idlest above which load decides", Default: 64, Low: 0, High: 1e5}
	smgRelative = router.Knob{Name: "relative", About: "their ratio, which must be exceeded too", Default: 1.5, Low: 1, High: 1e5}
)

// SMGCacheAware is SMG's cache-aware policy over its approximate tree: when load is uneven (most -
// fewest > 64 and most > 1.5*fewest) the least loaded endpoint; else the endpoint with the longest
// match if that is more than 30 % of the prompt, else the least loaded. Least loaded is the fewest
// requests in flight, then fewest ever processed, then the lowest index. Its limits on KV usage are
// off by default.
type SMGCacheAware struct {
	costs
	match, absolute, relative float64
}

// NewSMGCacheAware returns the policy.
func NewSMGCacheAware(p router.Params) *SMGCacheAware {
	return &SMGCacheAware{newCosts(p, "requests", "requests"), p.Knob(smgMatch), p.Knob(smgAbsolute), p.Knob(smgRelative)}
}

// Name implements [router.Policy].
func (*SMGCacheAware) Name() string { return "smg-cache-aware" }

// Route implements [router.Policy].
func (b *SMGCacheAware) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	least, longest := -1, -1
	fewest, most := int32(0), int32(0)
	for i, k := range q.Keep {
		if !k {
			continue
		}
		n := q.Snap.States[i].Requests
		b.set(d, i, float64(n))
		if least < 0 {
			fewest = n
		}
		fewest, most = min(fewest, n), max(most, n)
		if least < 0 || b.less(q, i, least) {
			least = i
		}
		if longest < 0 || q.Hits[i] > q.Hits[longest] || q.Hits[i] == q.Hits[longest] && b.less(q, i, longest) {
			longest = i
		}
	}
	uneven := float64(most-fewest) > b.absolute && float64(most) > b.relative*float64(fewest)
	d.Index, d.Propensity = least, 1
	d.Judge(q, b.keep)
	if !uneven && q.HitRatio(longest) > b.match {
		d.Index = longest
		if d.Why.Reason != router.OnlyOne {
			d.Why.Reason = router.ByCache
		}
	}
	d.Rank(q, b.keep, b.fallbacks)
	return nil
}

// less orders by load, requests ever processed, index.
func (b *SMGCacheAware) less(q *router.Query, i, j int) bool {
	x, y := &q.Snap.States[i], &q.Snap.States[j]
	if x.Requests != y.Requests {
		return x.Requests < y.Requests
	}
	if x.Begun != y.Begun {
		return x.Begun < y.Begun
	}
	return i < j
}

var _ router.Policy = (*SMGCacheAware)(nil)
