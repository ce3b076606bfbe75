package predictive

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

// Weights are the constants of the rule. They are flat around their defaults: see docs/policies.md.
type Weights struct {
	KVWait  float64 // seconds of waiting for KV blocks, beyond the forecast itself
	Decode  float64 // seconds of the own answer
	Stall   float64 // seconds of prefill times streams that it stalls
	Adapter float64 // seconds of the own answer, where it has to wait for the slot of another LoRA adapter
	SLO     float64 // seconds at stake times the probability of missing the SLO; 0: SLOs are not looked at
	Yield   float64 // factor by which a request of negative priority is charged more for what it stalls and less for its own answer; 1: like any other
	Margin  float64 // of near ties, in standard deviations of the differences between endpoints; 0: exact ties alone
}

// Policy is the predictive rule. One policy serves one router.
type Policy struct {
	name      string
	w         Weights
	fallbacks int

	cost []float64
	keep []bool
}

// New returns the policy under a name.
func New(name string, w Weights, p router.Params) *Policy {
	return &Policy{name: name, w: w, fallbacks: p.Fallbacks}
}

// The time to the first token is told in two parts, so that one sees whether the cache or the queue
// decided.
var terms = []string{"own prompt", "queue", "kv wait", "adapter", "decode", "stall", "slo"}

const (
	termPrompt = iota
	termQueue
	termWait
	termAdapter
	termDecode
	termStall
	termSLO
)

// Name implements [router.Policy].
func (p *Policy) Name() string { return p.name }

// Route implements [router.Policy].
func (p *Policy) Route(q *router.Query, d *router.Decision) error {
	fore := q.Forecasts()
	if fore == nil {
		return p.byLoad(q, d)
	}
	n := len(q.Keep)
	d.Why.Size("ms", terms, n)
	if cap(p.cost) < n {
		p.cost = make([]float64, n)
	}
	p.cost = p.cost[:n]
	p.keep = append(p.keep[:0], q.Keep...)
	w := p.weigh(q)
	least, worst := math.Inf(1), 0.0
	for i, k := range p.keep {
		if !k {
			continue
		}
		row := d.Why.Row(i)
		sum := price(q, &w, i, &fore[i], row)
		if !(math.Abs(sum) <= math.MaxFloat32) { // NaN too: never the best for want of a figure
			clear(row)
			row[termQueue], sum = math.MaxFloat32, math.MaxFloat32
		}
		p.cost[i] = sum
		least = min(least, sum)
		if s := float64(fore[i].Price.Sigma); s > worst { // not where it is NaN
			worst = s
		}
	}
	p.priceSLO(q, d, fore, least)
	d.Index = p.choose(q, worst)
	d.Propensity = 1
	p.explain(q, d)
	return nil
}

// price fills in what the placement on endpoint i costs, in ms, and returns the sum; the price of SLOs
// comes later.
func price(q *router.Query, w *Weights, i int, f *features.Forecast, row []float32) float64 {
	const ms = 1e3
	s := &q.Snap.States[i]
	choices := float64(max(q.Req.Choices, 1))
	first := ms * f.Price.First
	row[termPrompt] = max(0, min(ms*f.Price.Prefill, first)) // a prompt below nothing would make the queue endless
	row[termQueue] = first - row[termPrompt]
	row[termWait] = float32(ms * w.KVWait * float64(f.Price.KVWait))
	row[termAdapter] = float32(ms * w.Adapter * adapterWait(q, i, f))
	row[termDecode] = float32(ms * w.Decode * choices * float64(f.Price.Decode))
	row[termStall] = float32(ms * w.Stall * float64(f.Price.Prefill) * float64(s.Streaming))
	sum := float64(first)
	for _, v := range row[termWait:termSLO] {
		sum += float64(v)
	}
	return sum
}

const (
	leastMargin = 0.02
	mostMargin  = 0.30
)

// choose takes, among the endpoints within the margin of the least cost, the one that holds most of
// the prompt; among those that hold as much the cheapest; among equals one by the request's hash.
func (p *Policy) choose(q *router.Query, sigma float64) int {
	least := math.Inf(1)
	for i, k := range p.keep {
		if k {
			least = min(least, p.cost[i])
		}
	}
	band := least
	if p.w.Margin > 0 {
		band *= math.Exp(min(max(p.w.Margin*sigma, leastMargin), mostMargin))
	}
	best, equals := -1, uint64(0)
	for i, k := range p.keep {
		if !k || p.cost[i] > band {
			continue
		}
		switch c := p.compare(q, i, best); {
		case c > 0:
			best, equals = i, 1
		case c == 0:
			equals++
			if mix(q.Tie+equals)%equals == 0 { // each of the equals is as likely
				best = i
			}
		}
	}
	return best
}

// compare tells whether candidate i is better (1), as good (0) or worse (-1) than b; -1 for b is
// nobody.
func (p *Policy) compare(q *router.Query, i, b int) int {
	switch {
	case b < 0 || q.Hits[i] > q.Hits[b]:
		return 1
	case q.Hits[i] < q.Hits[b]:
		return -1
	}
	diff := p.cost[b] - p.cost[i]
	if math.Abs(diff) <= 1e-6*p.cost[b] {
		return 0
	}
	if diff > 0 {
		return 1
	}
	return -1
}

// mix is the finaliser of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (p *Policy) explain(q *router.Query, d *router.Decision) {
	for i, k := range p.keep {
		if !k {
			continue
		}
		d.Why.Totals[i] = float32(p.cost[i])
	}
	d.Judge(q, p.keep)
	if d.Why.Reason != router.OnlyOne && p.heldMore(q, d) {
		d.Why.Reason = router.ByCache
	}
	d.Rank(q, p.keep, p.fallbacks)
}

// heldMore reports whether the pick was not the cheapest: within the margin, the cache decided.
func (p *Policy) heldMore(q *router.Query, d *router.Decision) bool {
	for i, k := range p.keep {
		if k && p.cost[i] < p.cost[d.Index] && q.Hits[i] < q.Hits[d.Index] {
			return true
		}
	}
	return false
}

var _ router.Policy = (*Policy)(nil)
