package baseline

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

// Published defaults of llm-d-router's predicted-latency plugins: two prefix-affinity filters, the
// SLO headroom tier filter and the latency scorer.
var (
	predictedExact   = router.Knob{Name: "exact", About: "share of the prompt cached that the first affinity filter asks for", Default: 0.99, Low: 0, High: 1}
	predictedShare   = router.Knob{Name: "share", About: "the same of the second, within the tier", Default: 0.80, Low: 0, High: 1}
	predictedWait    = router.Knob{Name: "wait", About: "seconds by which the foretold TTFT of sticky endpoints may exceed that of the rest", Default: 5, Low: 0, High: 3600}
	predictedExplore = router.Knob{Name: "epsilon", About: "share of draws among endpoints without headroom while others have some", Default: 0.01, Low: 0, High: 1}
	predictedTTFT    = router.Knob{Name: "ttft", About: "weight of TTFT headroom; that of ITL headroom is the rest to 1", Default: 0.8, Low: 0, High: 1}
	predictedBuffer  = router.Knob{Name: "buffer", About: "factor on the ITL SLO", Default: 1, Low: 0, High: 10}

	predictedKnobs = []router.Knob{predictedExact, predictedShare, predictedWait, predictedExplore, predictedTTFT, predictedBuffer}
)

const (
	predictedSteps  = 100  // of weights: floor((1-c)*100)+1 hundredths
	predictedFreeKV = 0.02 // KV usage below which an endpoint takes sheddable requests whatever is foretold
)

// The groups of candidates. Those without headroom come best first: idle, then by which SLO is missed.
const (
	groupOut = iota
	groupKept
	groupIdle
	groupLateTokens
	groupLateFirst
	groupLateBoth
)

var (
	headroomTerms  = []string{"ttft headroom", "itl headroom"}
	compositeTerms = []string{"kv", "queue", "prefix"}
)

// LLMDPredicted is the decision layer of llm-d-router's predicted-latency profile over the forecasts
// of this router, of which it takes the 90 % quantiles, as the predictor of that profile learns them
// by default:
//
//	affinity 99 % -> tier of SLO headroom -> affinity 80 % -> latency score -> weighted random draw
//
// Headroom is the SLO less what is foretold, for TTFT and for ITL; without an SLO it is minus what is
// foretold. Endpoints with both are kept, but in 1 % of the draws those without, of which only the
// best kind counts: idle ones, then those that miss only the ITL, only the TTFT, both. The score
// favours the least distance from the SLO: with x the distance brought into 0..1 within the group,
// floor((1 - .8*x_ttft - .2*x_itl)*100) + 1 hundredths; a time in which all agree leaves its weight
// to the other. Sheddable requests (negative priority) that carry an SLO are refused unless some
// endpoint has headroom, is idle or has an empty KV cache.
//
// Without forecasts it draws by llm-d's composite score, the mean of free KV, relative queue and
// prefix match; a figure that no recent page gives counts 0. The tightest ITL SLO among the requests
// running on an endpoint, which llm-d compares with too, is not known here: the request's own stands
// in.
type LLMDPredicted struct {
	costs
	exact, share, wait, explore, ttft, buffer float64

	group  []uint8
	first  []float64 // foretold TTFT, seconds
	gap    []float64 // foretold ITL, seconds
	chance []float64 // of being drawn
}

// NewLLMDPredicted returns the policy.
func NewLLMDPredicted(p router.Params) *LLMDPredicted {
	return &LLMDPredicted{
		costs: newCosts(p, "score", headroomTerms...),
		exact: p.Knob(predictedExact), share: p.Knob(predictedShare), wait: p.Knob(predictedWait),
		explore: p.Knob(predictedExplore), ttft: p.Knob(predictedTTFT), buffer: p.Knob(predictedBuffer),
	}
}

// Name implements [router.Policy].
func (*LLMDPredicted) Name() string { return "llmd-predicted" }

// Route implements [router.Policy].
func (b *LLMDPredicted) Route(q *router.Query, d *router.Decision) error {
	foretold := b.read(q)
	b.terms = headroomTerms
	if !foretold {
		b.terms = compositeTerms
	}
	b.start(q, d)
	b.affinity(q, d, b.exact, groupKept, groupKept)
	if !foretold {
		b.affinity(q, d, b.share, groupKept, groupKept)
		b.composite(q, d)
		b.draw(q, d, 1)
		return nil
	}
	for i, g := range b.group {
		if q.Keep[i] && g == groupOut && d.Why.Filtered[i] == "" {
			b.drop(d, i, "not foretold")
		}
	}
	if !b.admits(q) {
		return router.ErrSaturated
	}
	kept, late := b.tier(q)
	b.affinity(q, d, b.share, groupKept, groupKept)
	b.affinity(q, d, b.share, groupIdle, groupLateBoth)
	share := 1.0
	switch {
	case kept && late:
		share = 1 - b.explore
	case late:
		share = 0
	}
	b.score(q, d, groupKept, share)
	b.score(q, d, b.best(d), 1-share)
	b.draw(q, d, share)
	return nil
}

// read takes the forecasts and puts every candidate that has one in the group of the kept; where
// none has, all are, and it returns false.
func (b *LLMDPredicted) read(q *router.Query) bool {
	n := len(q.Keep)
	if cap(b.group) < n {
		b.group, b.first, b.gap, b.chance = make([]uint8, n), make([]float64, n), make([]float64, n), make([]float64, n)
	}
	b.group, b.first, b.gap, b.chance = b.group[:n], b.first[:n], b.gap[:n], b.chance[:n]
	clear(b.group)
	clear(b.chance)
	fore, some := q.Forecasts(), false
	for i, k := range q.Keep {
		if k && fore != nil && usable(&fore[i].TTFT) && usable(&fore[i].ITL) {
			b.first[i], b.gap[i] = float64(fore[i].TTFT.P90), float64(fore[i].ITL.P90)
			b.group[i], some = groupKept, true
		}
	}
	for i, k := range q.Keep {
		if k && !some {
			b.group[i], b.first[i] = groupKept, 0 // of unknown, hence equal, speed
		}
	}
	return some
}

func usable(p *features.Prediction) bool { return p.P90 > 0 && !math.IsInf(float64(p.P90), 1) }

// affinity keeps, among the groups from..to, the endpoints that hold at least that share of the
// prompt, unless there are none or the rest would answer sooner by the wait.
func (b *LLMDPredicted) affinity(q *router.Query, d *router.Decision, share float64, from, to uint8) {
	in, out := math.Inf(1), math.Inf(1)
	for i, g := range b.group {
		switch {
		case g < from || g > to:
		case q.HitRatio(i) >= share:
			in = min(in, b.first[i])
		default:
			out = min(out, b.first[i])
		}
	}
	if math.IsInf(in, 1) || in-out > b.wait {
		return
	}
	for i, g := range b.group {
		if g >= from && g <= to && q.HitRatio(i) < share {
			b.group[i] = groupOut
			b.drop(d, i, "not sticky")
		}
	}
}

// headroom is the time left to the SLOs of the request, in seconds; negative: what is too much.
func (b *LLMDPredicted) headroom(q *router.Query, i int) (ttft, itl float64) {
	return q.Req.SLO.TTFT.Seconds() - b.first[i], q.Req.SLO.ITL.Seconds()*b.buffer - b.gap[i]
}

// admits is the latency SLO admitter.
func (b *LLMDPredicted) admits(q *router.Query) bool {
	if q.Req.Priority >= 0 || q.Req.SLO.TTFT <= 0 && q.Req.SLO.ITL <= 0 {
		return true
	}
	for i, g := range b.group {
		if g == groupOut {
			continue
		}
		s := &q.Snap.States[i]
		ttft, itl := b.headroom(q, i)
		if ttft >= 0 && itl >= 0 || s.Requests == 0 || hasPage(q, s) && s.KVUsage < predictedFreeKV {
			return true
		}
	}
	return false
}

// tier sorts the kept into those with headroom and the kinds of those without, and reports whether
// there are any of each.
func (b *LLMDPredicted) tier(q *router.Query) (kept, late bool) {
	for i, g := range b.group {
		if g == groupOut {
			continue
		}
		ttft, itl := b.headroom(q, i)
		switch {
		case ttft >= 0 && itl >= 0:
			kept = true
			continue
		case q.Snap.States[i].Requests == 0:
			b.group[i] = groupIdle
		case ttft >= 0:
			b.group[i] = groupLateTokens
		case itl >= 0:
			b.group[i] = groupLateFirst
		default:
			b.group[i] = groupLateBoth
		}
		late = true
	}
	return kept, late
}

// best is the best group of those without headroom; the others are dropped.
func (b *LLMDPredicted) best(d *router.Decision) uint8 {
	best := uint8(groupLateBoth)
	for _, g := range b.group {
		if g > groupKept {
			best = min(best, g)
		}
	}
	for i, g := range b.group {
		if g > best {
			b.group[i] = groupOut
			b.drop(d, i, "less headroom")
		}
	}
	return best
}

// score gives the members of a group their scores and chances, which sum to share.
func (b *LLMDPredicted) score(q *router.Query, d *router.Decision, group uint8, share float64) {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{}
	for i, g := range b.group {
		if g != group {
			continue
		}
		ttft, itl := b.headroom(q, i)
		for k, h := range [2]float64{math.Abs(ttft), math.Abs(itl)} {
			lo[k], hi[k] = min(lo[k], h), max(hi[k], h)
		}
	}
	weights := [2]float64{b.ttft, 1 - b.ttft}
	for k := range weights {
		if !(hi[k] > lo[k]) && hi[1-k] > lo[1-k] { // all agree: the other decides
			weights[k], weights[1-k] = 0, 1
		}
	}
	var total float64
	for i, g := range b.group {
		if g != group {
			continue
		}
		ttft, itl := b.headroom(q, i)
		var gains [2]float64
		for k, h := range [2]float64{math.Abs(ttft), math.Abs(itl)} {
			gains[k] = weights[k]
			if hi[k] > lo[k] {
				gains[k] *= 1 - (h-lo[k])/(hi[k]-lo[k])
			}
		}
		gain := gains[0] + gains[1]
		b.chance[i] = (math.Floor(gain*predictedSteps+1e-9) + 1) / predictedSteps
		total += b.chance[i]
		if gain > 0 { // the terms share the rounding
			b.set(d, i, b.chance[i]*gains[0]/gain, b.chance[i]*gains[1]/gain)
		} else {
			b.set(d, i, b.chance[i], 0)
		}
	}
	for i, g := range b.group {
		if g == group {
			b.chance[i] *= share / total
		}
	}
}

// composite scores every candidate left without forecasts.
func (b *LLMDPredicted) composite(q *router.Query, d *router.Decision) {
	most := int32(0)
	for i, g := range b.group {
		if s := &q.Snap.States[i]; g != groupOut && hasQueue(q, s) {
			most = max(most, s.Waiting)
		}
	}
	var total float64
	n := 0
	for i, g := range b.group {
		if g == groupOut {
			continue
		}
		s := &q.Snap.States[i]
		var kv, queue float64
		if hasPage(q, s) {
			kv = 1 - float64(s.KVUsage)
		}
		if hasQueue(q, s) {
			queue = 1
			if most > 0 {
				queue = float64(most-s.Waiting) / float64(most)
			}
		}
		b.set(d, i, kv/3, queue/3, q.HitRatio(i)/3)
		b.chance[i] = -b.cost[i]
		total += b.chance[i]
		n++
	}
	for i, g := range b.group {
		switch {
		case g == groupOut:
		case total > 0:
			b.chance[i] /= total
		default:
			b.chance[i] = 1 / float64(n)
		}
	}
}

// draw picks by the chances; kept is the part of them that falls to endpoints with headroom.
func (b *LLMDPredicted) draw(q *router.Query, d *router.Decision, kept float64) {
	at := q.Rand.Float64()
	for i, c := range b.chance {
		if c <= 0 {
			continue
		}
		d.Index, d.Propensity = i, min(c, 1) // the last one, should rounding leave at above the sum
		if at -= c; at < 0 {
			break
		}
	}
	d.Why.Drawn = d.Why.Drawn[:0]
	sticky := false
	for i, c := range b.chance {
		d.Why.Drawn = append(d.Why.Drawn, float32(c))
		sticky = sticky || d.Why.Filtered[i] == "not sticky"
		if b.group[i] != groupOut && b.group[i] != b.group[d.Index] {
			b.drop(d, i, "other tier")
		}
	}
	d.Judge(q, b.keep)
	switch {
	case q.Candidates() == 1:
		d.Why.Reason = router.OnlyOne
	case b.group[d.Index] != groupKept && kept > 0:
		d.Why.Reason = router.ByExplore
	case !b.highest(d.Index):
		d.Why.Reason = router.ByDraw
	case sticky:
		d.Why.Reason = router.ByCache
	case d.Why.Reason == router.OnlyOne:
		d.Why.Reason = router.NoReason // the only one of several that is left
	}
	d.Rank(q, b.keep, b.fallbacks)
}

// highest reports whether nobody left has a higher score than i.
func (b *LLMDPredicted) highest(i int) bool {
	for j, k := range b.keep {
		if k && b.cost[j] < b.cost[i] {
			return false
		}
	}
	return true
}

var _ router.Policy = (*LLMDPredicted)(nil)
