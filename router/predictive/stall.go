package predictive

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

// unavoidable is the share of the stall that counts of the prefill which the request needs wherever it
// goes. Somebody is stalled by that in any case; charged in full, it sorts cold requests by size, long
// ones to where few stream, and leaves endpoints unequally loaded.
const unavoidable = 0.3

// weights are those of the terms for one request.
type weights struct {
	decode, stall float64
	spared        float64 // seconds of its prefill that are not charged for what they stall
}

// weigh returns the weights for a request. One of negative priority (batch work, by the operator's
// word) yields: what it inflicts counts more, all of it, and what it gets counts less. So it gathers
// where few stream, away from those who are in a hurry, who find such endpoints slow and leave them to
// it. It is the request's own priority that counts, never that of others.
func (p *Policy) weigh(q *router.Query, fore []features.Forecast) weights {
	if q.Req.Priority < 0 && p.w.Yield > 1 {
		return weights{decode: p.w.Decode / p.w.Yield, stall: p.w.Stall * p.w.Yield}
	}
	least := math.Inf(1)
	for i, k := range p.keep {
		if v := float64(fore[i].Price.Prefill); k && v >= 0 { // nor NaN
			least = min(least, v)
		}
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	return weights{decode: p.w.Decode, stall: p.w.Stall, spared: (1 - unavoidable) * least}
}
