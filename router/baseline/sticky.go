package baseline

import (
	"math"

	"github.com/presage-router/presage/router"
)

// Published defaults of llm-d-router's prefix-affinity filter and token-load scorer.
var (
	stickyShare = router.Knob{Name: "share", About: "share of the prompt that must be cached", Default: 0.80, Low: 0, High: 1}
	stickyWait  = router.Knob{Name: "wait", About: "seconds by which the sticky endpoints may be slower than the rest", Default: 18, Low: 0, High: 3600}
	stickyMedia = router.Knob{Name: "media", About: "the same for requests with images or audio", Default: 36, Low: 0, High: 3600}

	stickyKnobs = []router.Knob{stickyShare, stickyWait, stickyMedia}
)

const stickyPeakPrefill = 15_928.0 // tokens per second of one endpoint

// sticky is llm-d-router's affinity filter: it keeps the endpoints that hold at least 80 % of the
// prompt, unless the least busy of them would answer T_max later than the least busy other, with
// TTFT taken as uncached tokens in flight over the peak prefill throughput.
type sticky struct {
	costs
	share, wait, media float64
	peak               float64
}

func newSticky(p router.Params, c costs) sticky {
	s := sticky{costs: c, share: p.Knob(stickyShare), wait: p.Knob(stickyWait), media: p.Knob(stickyMedia), peak: p.PeakPrefill}
	if s.peak <= 0 {
		s.peak = stickyPeakPrefill
	}
	return s
}

// filter drops the candidates that the affinity leaves out and reports whether there are any.
func (b *sticky) filter(q *router.Query, d *router.Decision) bool {
	limit := b.wait
	if q.Req.MediaUnits > 0 {
		limit = b.media
	}
	in, out := math.Inf(1), math.Inf(1) // lowest TTFT of the sticky ones and of the rest
	for i, k := range q.Keep {
		if !k {
			continue
		}
		ttft := float64(q.Snap.States[i].Uncached) / b.peak
		if q.HitRatio(i) >= b.share {
			in = min(in, ttft)
		} else {
			out = min(out, ttft)
		}
	}
	if math.IsInf(in, 1) || in-out > limit {
		return false // nobody holds it, or holding it is not worth the wait
	}
	dropped := false
	for i, k := range q.Keep {
		if k && q.HitRatio(i) < b.share {
			b.drop(d, i, "not sticky")
			dropped = true
		}
	}
	return dropped
}

// pick takes the best of those left; where the affinity left others out, the cache is the reason.
func (b *sticky) pick(q *router.Query, d *router.Decision, dropped bool) {
	b.lowest(q, d)
	if dropped {
		d.Why.Reason = router.ByCache
	}
}

// StickyToken is llm-d-router's recommendation for prefill-bound traffic: the affinity filter, then
// the token-load score 1 - min(1, (uncached tokens in flight + own)/4,194,304).
type StickyToken struct{ sticky }

// NewStickyToken returns the policy.
func NewStickyToken(p router.Params) *StickyToken {
	return &StickyToken{newSticky(p, newCosts(p, "score", "tokens"))}
}

// Name implements [router.Policy].
func (*StickyToken) Name() string { return "llmd-sticky-token" }

// Route implements [router.Policy].
func (b *StickyToken) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	dropped := b.filter(q, d)
	for i, k := range b.keep {
		if k {
			load := float64(q.Snap.States[i].Uncached) + float64(q.UncachedTokens(i))
			b.set(d, i, 1-min(1, load/router.TokenLoadCapacity))
		}
	}
	b.pick(q, d, dropped)
	return nil
}

// StickyActive is the decode-bound variant: the affinity filter, then the active-request score, 1
// where nothing is in flight, else (Imax-I)/Imax.
type StickyActive struct{ sticky }

// NewStickyActive returns the policy.
func NewStickyActive(p router.Params) *StickyActive {
	return &StickyActive{newSticky(p, newCosts(p, "score", "requests"))}
}

// Name implements [router.Policy].
func (*StickyActive) Name() string { return "llmd-active" }

// Route implements [router.Policy].
func (b *StickyActive) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	dropped := b.filter(q, d)
	most := int32(0)
	for i, k := range b.keep {
		if k {
			most = max(most, q.Snap.States[i].Requests)
		}
	}
	for i, k := range b.keep {
		if !k {
			continue
		}
		score := 1.0
		if n := q.Snap.States[i].Requests; n > 0 {
			score = float64(most-n) / float64(most)
		}
		b.set(d, i, score)
	}
	b.pick(q, d, dropped)
	return nil
}

var (
	_ router.Policy = (*StickyToken)(nil)
	_ router.Policy = (*StickyActive)(nil)
)
