package sensitivity

import (
	"math"
	"math/rand/v2"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

// noise multiplies all times that a policy is foretold of an endpoint by one log-normal factor: drawn
// anew for every decision and endpoint, or once per endpoint for the run. The learner does not see it,
// and so cannot learn it away; nor does the policy, unless it is told.
type noise struct {
	veil
	sigma  float64
	lasts  bool
	told   bool
	rng    *rand.Rand
	factor []float64
	fore   []features.Forecast
}

func newNoise(p router.Policy, sigma float64, lasts, told bool, seed uint64) *noise {
	return &noise{veil: veil{p}, sigma: sigma, lasts: lasts, told: told, rng: rand.New(rand.NewPCG(seed, 0x6e6f697365))}
}

// Route implements [router.Policy].
func (n *noise) Route(q *router.Query, d *router.Decision) error {
	fore := q.Forecasts()
	if fore == nil {
		return n.Policy.Route(q, d)
	}
	if !n.lasts {
		n.factor = n.factor[:0]
	}
	for len(n.factor) < len(fore) {
		n.factor = append(n.factor, math.Exp(n.sigma*n.rng.NormFloat64()))
	}
	n.fore = append(n.fore[:0], fore...)
	for i := range n.fore {
		scale(&n.fore[i], float32(n.factor[i]))
		if s := &n.fore[i].Price.Sigma; n.told {
			*s = float32(math.Hypot(float64(*s), n.sigma))
		}
	}
	return supposing(n.Policy, q, d, n.fore)
}

func scale(f *features.Forecast, by float32) {
	p := &f.Price
	for _, t := range []*float32{&p.First, &p.KVWait, &p.Prefill, &p.Gap, &p.Decode} {
		*t *= by
	}
	for _, t := range []*features.Prediction{&f.TTFT, &f.ITL} {
		*t = features.Prediction{Mean: by * t.Mean, P50: by * t.P50, P90: by * t.P90, P99: by * t.P99}
	}
}

// supposing asks a policy under other forecasts. The router's own stay what is recorded and learned.
func supposing(p router.Policy, q *router.Query, d *router.Decision, fore []features.Forecast) error {
	view := *q
	view.Suppose(fore)
	return p.Route(&view, d)
}

var _ router.Policy = (*noise)(nil)
