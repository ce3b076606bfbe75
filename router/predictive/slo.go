package predictive

import (
	"math"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

const (
	mostAtStake = 2.0  // seconds that one missed SLO is worth at most
	sloShare    = 0.30 // of the cheapest cost that the price of SLOs may reach, so that it never overrules a cache
)

// priceSLO adds the price of probably missing the SLOs that the request carries: the seconds at
// stake times the probability of a miss, as the quantiles of the forecast give it.
func (p *Policy) priceSLO(q *router.Query, d *router.Decision, fore []features.Forecast, least float64) {
	ttft, itl := q.Req.SLO.TTFT.Seconds(), q.Req.SLO.ITL.Seconds()
	if p.w.SLO <= 0 || ttft <= 0 && itl <= 0 {
		return
	}
	for i, k := range p.keep {
		if !k || p.cost[i] == math.MaxFloat32 { // not foretold
			continue
		}
		f := &fore[i]
		var price float64
		if ttft > 0 {
			price += missing(&f.TTFT, ttft) * min(ttft, mostAtStake)
		}
		if itl > 0 {
			answer := 1.0
			if gap := float64(f.ITL.P50); gap > 0 {
				answer = max(1, float64(f.Price.Decode)/gap)
			}
			price += missing(&f.ITL, itl) * min(itl*answer, mostAtStake)
		}
		price = min(1e3*p.w.SLO*price, sloShare*least)
		d.Why.Row(i)[termSLO] = float32(price)
		p.cost[i] += price
	}
}

// missing is the probability that a time exceeds its limit: of a log-normal with the forecast's
// median and 90 % quantile. A forecast that is not there is a coin.
func missing(f *features.Prediction, limit float64) float64 {
	if !(f.P50 > 0) || !(f.P90 >= f.P50) {
		return 0.5
	}
	const z90 = 1.2815515655446004
	sigma := max(math.Log(float64(f.P90/f.P50))/z90, 0.02)
	return 0.5 * math.Erfc(math.Log(limit/float64(f.P50))/sigma/math.Sqrt2)
}
