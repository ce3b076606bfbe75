package report

import (
	"fmt"
	"math"
)

func (p *page) reliability(c *Comparison) {
	r := c.Reliability
	if r == nil || len(r.Curves) == 0 {
		p.Reliable = []string{"No run was watched from inside, so forecasts were not held against what happened."}
		if c.Live != nil {
			p.Reliable = []string{"Of live traffic only forecasts of chosen endpoints can be checked: presage_forecast_covered_total counts them."}
		}
		return
	}
	f := reliability(r)
	p.Reliability = &f
	for _, k := range r.Curves {
		where := "on the chosen endpoint"
		if k.Random {
			where = "on an endpoint drawn at random"
		}
		var q, at []string
		for i := range k.Quantiles {
			if i < len(k.Observed) {
				q = append(q, "p"+number(100*k.Quantiles[i], 0))
				at = append(at, number(100*k.Observed[i], 1))
			}
		}
		p.Reliable = append(p.Reliable, fmt.Sprintf("%s %s: %s of %s at or under %s.", k.Target, where, unit(list(at), "%"), plural(k.N, "request"), list(q)))
	}
	if s := calibrated(r); s != "" {
		p.Reliable = append(p.Reliable, s)
	}
	if r.Lived.Known() {
		p.Reliable = append(p.Reliable, percent(r.Lived, 1)+" of all requests came at or under the p90 foretold of them.")
	}
	if s := flattery(r); s != "" {
		p.Reliable = append(p.Reliable, s)
	}
	p.Reliable = append(p.Reliable, fmt.Sprintf("One run of %s at load %s, seed %d.", r.Policy, factor(r.Load), r.Seed))
}

// calibrated says where the foretold p90 does not hold for 90 %, beyond what so few requests scatter.
func calibrated(r *Reliability) string {
	const p90 = 0.9
	var off []string
	known := false
	for _, k := range r.Curves {
		for i := range min(len(k.Quantiles), len(k.Observed)) {
			if k.Quantiles[i] != p90 || !k.Observed[i].Known() || k.N <= 0 {
				continue
			}
			known = true
			where := "chosen endpoints"
			if k.Random {
				where = "endpoints drawn at random"
			}
			switch gap, doubt := float64(k.Observed[i])-p90, 1.96*math.Sqrt(p90*(1-p90)/float64(k.N)); {
			case gap < -doubt:
				off = append(off, "too low on "+where)
			case gap > doubt:
				off = append(off, "too high on "+where)
			}
		}
	}
	switch {
	case !known:
		return ""
	case len(off) == 0:
		return "The foretold p90 holds, within what so many requests scatter."
	}
	return "The foretold p90 is " + list(off) + "."
}

// flattery says whether the forecasts of chosen endpoints are too good, as choosing the lowest of many
// noisy ones makes them: by the largest gap between the curves that is above its own noise.
func flattery(r *Reliability) string {
	most, compared := Value(0), false
	for _, a := range r.Curves {
		for _, b := range r.Curves {
			if !a.Random || b.Random || a.Target != b.Target || a.N == 0 || b.N == 0 {
				continue
			}
			compared = true
			for i := range min(len(a.Observed), len(b.Observed)) {
				p, q := float64(a.Observed[i]), float64(b.Observed[i])
				doubt := 1.96 * math.Sqrt(max(p*(1-p), 0)/float64(a.N)+max(q*(1-q), 0)/float64(b.N))
				if gap := p - q; gap > doubt {
					most = max(most, Value(gap))
				}
			}
		}
	}
	switch {
	case !compared:
		return ""
	case most == 0:
		return "Choosing the lowest of many noisy forecasts can make the chosen one look too good; no such gap is shown here."
	}
	return "Choosing the lowest of many noisy forecasts makes the chosen one look too good: by " + unit(number(100*most, 0), "points") + " here where the lines are farthest apart."
}
