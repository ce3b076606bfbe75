package admin

import (
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor/drift"
)

// Values of the label target: the times that are foretold.
const (
	targetTTFT = "ttft"
	targetITL  = "itl"
)

// foretold holds what came of forecasts, by target.
type foretold struct{ ttft, itl checks }

// checks compares forecasts of one target with what happened.
type checks struct {
	errors  [2]prometheus.Observer // of requests that the policy chose to place there, and of explorations
	checked prometheus.Counter
	covered [3]prometheus.Counter // within P50, P90, P99

	mu      sync.Mutex
	bias    float64 // fading mean of log(P50/actual)
	weight  float64 // of that mean, 1 in the long run
	drift   drift.Detector
	drifted int // forecasts since the last alarm; 0: there was none
}

const (
	biasKeep   = 0.99 // of the fading bias, per forecast
	driftLasts = 200  // forecasts for which an alarm shows
)

// explored is the propensity below which a placement counts as an exploration: the policy would
// rather have placed the request elsewhere.
const explored = 0.5

// bind makes the series of one target.
func (c *checks) bind(m *Metrics, target string) error {
	for i, split := range []string{"chosen", "explored"} {
		c.errors[i] = m.forecastError.WithLabelValues(target, split)
	}
	c.checked = m.forecastChecked.WithLabelValues(target)
	for i, q := range []string{"0.5", "0.9", "0.99"} {
		c.covered[i] = m.forecastCovered.WithLabelValues(target, q)
	}
	var err error
	c.drift, err = drift.New(drift.Params{})
	return err
}

// judge takes the forecasts of a finished request.
func (m *Metrics) judge(o *features.Observation, model string) {
	if !o.Comparable() {
		return
	}
	chosen := o.Policy != "probe" && o.Propensity >= explored
	if p := &o.Fore.TTFT; p.Known() && o.TTFT > 0 {
		m.hot.foretoldTTFT.of(one{model}).Observe(float64(p.P50))
		m.foretold.ttft.judge(p, o.TTFT.Seconds(), chosen)
	}
	if p := &o.Fore.ITL; p.Known() && o.ITL > 0 {
		m.hot.foretoldITL.of(one{model}).Observe(float64(p.P50))
		m.foretold.itl.judge(p, o.ITL.Seconds(), chosen)
	}
}

func (c *checks) judge(p *features.Prediction, actual float64, chosen bool) {
	split := 1
	if chosen {
		split = 0
	}
	c.errors[split].Observe(math.Abs(float64(p.P50)-actual) / actual)
	c.checked.Inc()
	for i, q := range [...]float32{p.P50, p.P90, p.P99} {
		if actual <= float64(q) {
			c.covered[i].Inc()
		}
	}
	z := math.Log(actual / float64(p.P50))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bias = biasKeep*c.bias - (1-biasKeep)*z
	c.weight = biasKeep*c.weight + 1 - biasKeep
	if c.drift.Observe(z) != drift.None {
		c.drifted = 1
	} else if c.drifted > 0 {
		c.drifted++
	}
}

// state returns the bias as a ratio, foretold over actual, and whether an alarm is recent; ok is false
// before the first forecast.
func (c *checks) state() (bias float64, drifting, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.weight == 0 {
		return 0, false, false
	}
	return math.Exp(c.bias / c.weight), c.drifted > 0 && c.drifted <= driftLasts, true
}
