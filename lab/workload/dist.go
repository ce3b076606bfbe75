package workload

import (
	"math"
	"math/rand/v2"
)

// Dist is a distribution of lengths in tokens, of counts, or of seconds. The zero value is no
// distribution.
type Dist struct {
	Kind string // fixed, uniform, loguniform, normal, lognormal, geometric or quantiles; empty: none

	A float64 // fixed: the value; uniform, loguniform: the least; normal, lognormal, geometric: the mean before cutting
	B float64 // uniform, loguniform: the greatest; normal: standard deviation; lognormal: sigma of the logarithm

	// Of quantiles: values Q at the probabilities P, both rising, geometric interpolation between
	// them and the ends flat.
	P, Q []float64

	Min, Max float64 // values are cut to these; Max 0: no upper end
}

// IsZero reports whether there is no distribution.
func (d *Dist) IsZero() bool { return d.Kind == "" }

// Sample draws a value.
func (d *Dist) Sample(rng *rand.Rand) float64 {
	x := d.A
	switch d.Kind {
	case "uniform":
		x = d.A + (d.B-d.A)*rng.Float64()
	case "loguniform":
		x = d.A * math.Pow(d.B/d.A, rng.Float64())
	case "normal":
		x = d.A + d.B*rng.NormFloat64()
	case "lognormal":
		// exp(N(mu, sigma²)) has the mean exp(mu+sigma²/2).
		x = d.A * math.Exp(d.B*rng.NormFloat64()-d.B*d.B/2)
	case "geometric":
		// Trials up to the first success, from 1, with mean A.
		x = 1
		if d.A > 1 {
			x = math.Ceil(math.Log1p(-rng.Float64()) / math.Log1p(-1/d.A))
			x = max(x, 1)
		}
	case "quantiles":
		x = interpolate(d.P, d.Q, rng.Float64())
	}
	x = max(x, d.Min)
	if d.Max > 0 {
		x = min(x, d.Max)
	}
	return x
}

// Tokens draws a whole number of at least 1.
func (d *Dist) Tokens(rng *rand.Rand) int { return max(1, int(math.Round(d.Sample(rng)))) }

// interpolate is the value at probability u, geometric where both ends are above 0.
func interpolate(p, q []float64, u float64) float64 {
	if u <= p[0] {
		return q[0]
	}
	for i := 1; i < len(p); i++ {
		if u > p[i] {
			continue
		}
		f := (u - p[i-1]) / (p[i] - p[i-1])
		if q[i-1] > 0 {
			return q[i-1] * math.Pow(q[i]/q[i-1], f)
		}
		return q[i-1] + f*(q[i]-q[i-1])
	}
	return q[len(q)-1]
}

// parseDist reads a number (fixed) or one of
//
//	{uniform: {min: 1, max: 9}} {loguniform: {min: 1, max: 9}} {normal: {mean: 9, sd: 2}}
//	{lognormal: {mean: 9, sigma: 1}} {geometric: {mean: 9}} {quantiles: {p: [0.1, 0.5, 1], values: [1, 5, 9]}}
//
// normal, lognormal and geometric with min and max where values are to be cut. lo and hi bound every
// value.
func parseDist(v *node, lo, hi float64) Dist {
	if !v.there() {
		return Dist{}
	}
	if len(v.pairs()) == 0 {
		return Dist{Kind: "fixed", A: v.number(lo, hi), Min: lo, Max: hi}
	}
	kind, arg := v.only("uniform", "loguniform", "normal", "lognormal", "geometric", "quantiles")
	if arg == nil || !arg.mapping() {
		return Dist{}
	}
	d := Dist{Kind: kind, Min: lo, Max: hi}
	switch kind {
	case "uniform", "loguniform":
		d.A, d.B = arg.need("min").number(lo, hi), arg.need("max").number(lo, hi)
		switch {
		case d.A > d.B:
			arg.fail("min %v is above max %v", d.A, d.B)
		case kind == "loguniform" && d.A <= 0:
			arg.key("min").fail("must be above 0")
		}
	case "quantiles":
		d.P, d.Q = arg.need("p").rising(0, 1), arg.need("values").rising(lo, hi)
		if len(d.P) != len(d.Q) || len(d.P) == 0 {
			arg.fail("%d probabilities with %d values; want as many of both, at least one", len(d.P), len(d.Q))
			return Dist{}
		}
	default:
		d.A = arg.need("mean").number(lo, hi)
		switch kind {
		case "normal":
			d.B = arg.need("sd").number(0, hi)
		case "lognormal":
			d.B = arg.need("sigma").number(0, 4)
		}
		if c := arg.key("min"); c.there() {
			d.Min = c.number(lo, hi)
		}
		if c := arg.key("max"); c.there() {
			d.Max = c.number(lo, hi)
		}
		if d.Min > d.Max {
			arg.fail("min %v is above max %v", d.Min, d.Max)
		}
	}
	arg.end()
	return d
}
