package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/experiment"
)

// trial reads the experiment and the shadows in force when the page is asked for; their figures are
// absent while there are none.
type trial struct{ m *Metrics }

// What the page says of experiments and shadows.
var (
	descArms       = desc("experiment_requests_total", "Decisions by experiment arm, washouts included.", "arm")
	descTrips      = desc("experiment_guardrail_trips_total", "1 where the guardrail has ended the experiment: the control decides everything.", "guardrail")
	descShadows    = desc("shadow_decisions_total", "Decisions that a shadow policy took too, by whether it agreed.", "agrees", "policy")
	descShadowGain = desc("shadow_foretold_gain_seconds", "What the shadow's picks would have saved by its own forecast, where its costs are times.", "policy")
	descShadowBad  = desc("shadow_failures_total", "Shadow decisions that came to nothing, by cause; they disturb no request.", "cause", "policy")
)

// Describe implements [prometheus.Collector].
func (t *trial) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descArms, descTrips, descShadows, descShadowGain, descShadowBad} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (t *trial) Collect(ch chan<- prometheus.Metric) {
	p := t.m.composed.Load()
	if p == nil {
		return
	}
	e := emitter(ch)
	x, shadow := experiment.Of(*p)
	if x != nil {
		s := x.Status()
		for _, a := range s.Arms {
			e.counter(descArms, float64(a.Decisions), pairs("arm", t.m.arms.Value(a.Name))...)
		}
		for _, name := range experiment.Metrics() {
			tripped := s.Trip != nil && s.Trip.Metric.String() == name
			e.counter(descTrips, map[bool]float64{true: 1}[tripped], pairs("guardrail", name)...)
		}
	}
	if shadow == nil {
		return
	}
	for _, s := range shadow.Report() {
		policy := t.m.policies.Value(s.Policy)
		e.counter(descShadows, float64(s.Agreed), pairs("agrees", "true", "policy", policy)...)
		e.counter(descShadows, float64(s.Decisions-s.Agreed), pairs("agrees", "false", "policy", policy)...)
		e.counter(descShadowBad, float64(s.Panics), pairs("cause", "panic", "policy", policy)...)
		e.counter(descShadowBad, float64(s.Failed), pairs("cause", "invalid", "policy", policy)...)
		if s.Gains > 0 {
			ch <- prometheus.MustNewConstSummary(descShadowGain, s.Gains, s.Gain*time.Millisecond.Seconds(), nil, policy)
		}
	}
}

// Composed tells which policy is in force, so that the experiment and the shadows within are shown.
func (m *Metrics) Composed(p router.Policy) { m.composed.Store(&p) }

var _ prometheus.Collector = (*trial)(nil)
