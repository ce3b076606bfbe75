package predictive

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

const (
	mostAtStake = 2.0  // seconds that one missed SLO is worth at most
	doubt       = 0.1  // standard deviation of the logarithm of a difference between endpoints
	sloShare    = 0.10 // of the cheapest cost that the price of SLOs may reach, so that it never overrules a cache
)

// priceSLO adds the price of probably missing the SLOs that the request carries: the seconds at
// stake times the probability of a miss, as the quantiles of the forecast give it.
func (p *Policy) priceSLO(q *router.Query, d *router.Decision, fore []features.Forecast, least float64) {
	ttft, itl := q.Req.SLO.TTFT.Seconds(), q.Req.SLO.ITL.Seconds()
	if p.w.SLO <= 0 || ttft <= 0 && itl <= 0 {
		return
	}
	commonTTFT, commonITL := p.common(fore)
	for i, k := range p.keep {
		if !k || p.cost[i] == math.MaxFloat32 { // not foretold
			continue
		}
		f := &fore[i]
		var price float64
		if ttft > 0 {
			mid := commonTTFT * float64(f.Price.First+f.Price.KVWait)
			price += missing(&f.TTFT, mid, ttft) * min(ttft, mostAtStake)
		}
		if itl > 0 {
			mid := commonITL * float64(f.Price.Gap)
			answer := 1.0
			if n := float64(f.Price.Decode / f.Price.Gap); n > 1 { // nor NaN
				answer = n
			}
			price += missing(&f.ITL, mid, itl) * min(itl*answer, mostAtStake)
		}
		price = min(1e3*p.w.SLO*price, sloShare*least)
		if !(price >= 0) {
			price = 0 // of what is not foretold
		}
		d.Why.Row(i)[termSLO] = float32(price)
		p.cost[i] += price
	}
}

// common is by what factor the forecasts exceed the laws on average over the candidates (geometric
// mean), for TTFT and ITL. Forecasts know best how slow things are; how endpoints differ is taken
// from the law, since members that know only the recent past say the same of all of them.
func (p *Policy) common(fore []features.Forecast) (ttft, itl float64) {
	var n, first, gap float64
	products := [2]float64{1, 1} // logarithms are taken of a few ratios at a time
	for i, k := range p.keep {
		f := &fore[i]
		if !k || !f.TTFT.Known() || !f.ITL.Known() || !(f.Price.First > 0) || !(f.Price.Gap > 0) {
			continue
		}
		t, g := float64(f.TTFT.P50/(f.Price.First+f.Price.KVWait)), float64(f.ITL.P50/f.Price.Gap)
		if !plausible(t) || !plausible(g) { // one endpoint must not price the others
			continue
		}
		products[0] *= t
		products[1] *= g
		if n++; int(n)%8 == 0 {
			first, gap = first+math.Log(products[0]), gap+math.Log(products[1])
			products = [2]float64{1, 1}
		}
	}
	first, gap = first+math.Log(products[0]), gap+math.Log(products[1])
	if n == 0 {
		return 1, 1
	}
	return math.Exp(first / n), math.Exp(gap / n)
}

// plausible reports whether a forecast and the law are within a factor of a million of each other.
func plausible(ratio float64) bool { return ratio > 1e-6 && ratio < 1e6 }

// missing is the probability that a time exceeds its limit: of a log-normal with the given median, the
// spread of the forecast and the doubt about how endpoints differ; without the doubt a herd whose ITL
// comes close to its SLO is sent where the law errs by one percent. A forecast that is not there is a
// coin.
func missing(f *features.Prediction, mid, limit float64) float64 {
	if !(f.P50 > 0) || !(f.P90 >= f.P50) || !(mid > 0) {
		return 0.5
	}
	const z90 = 1.2815515655446004
	spread := max(float64(f.P90/f.P50), 1.026)
	far := 1.6 * spread * spread * spread * spread // beyond some four standard deviations
	switch {
	case limit >= mid*far:
		return 0
	case mid >= limit*far:
		return 1
	}
	own := math.Log(spread) / z90
	sigma := math.Sqrt(own*own + doubt*doubt)
	return 0.5 * math.Erfc(math.Log(limit/mid)/sigma/math.Sqrt2)
}
