package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
)

// tuning reads the adaptive policy in force when the page is asked for; its figures are absent while
// there is none.
type tuning struct{ m *Metrics }

// What the page says of the adaptive policy.
var (
	descRegime   = desc("adaptive_regime", "1 for the side that the adaptive policy's active detectors pull to, 0 for the other.", "regime")
	descWeight   = desc("adaptive_weight", "Weight of a scorer; all sum up to 1.", "scorer")
	descSwitches = desc("adaptive_switches_total", "Switches of the regime, by the one they led to.", "to")
	descChanges  = desc("adaptive_changes_total", "Changes of the weights or the regime.")
	descDetector = desc("adaptive_detector_ratio", "What a detector sees, smoothed, 0 to 1.", "detector")
	descActive   = desc("adaptive_detector_active", "1 while a detector has a say in the weights.", "detector")
	descPicks    = desc("adaptive_picks_total", "Decisions by whether the static weights would have picked the same endpoint.", "static")
)

// Describe implements [prometheus.Collector].
func (t *tuning) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRegime, descWeight, descSwitches, descChanges, descDetector, descActive, descPicks} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (t *tuning) Collect(ch chan<- prometheus.Metric) {
	p := t.m.adaptive.Load()
	if p == nil {
		return
	}
	e := emitter(ch)
	s := p.Status()
	for _, side := range []router.Category{router.Affinity, router.Distribution} {
		e.gauge(descRegime, map[bool]float64{true: 1}[s.Regime == side], pairs("regime", side.String())...)
		e.counter(descSwitches, float64(s.Switches[side]), pairs("to", side.String())...)
	}
	for _, w := range s.Weights {
		e.gauge(descWeight, w.Value, pairs("scorer", w.Scorer)...)
	}
	for _, d := range s.Detectors {
		e.gauge(descDetector, d.Value, pairs("detector", d.Detector)...)
		e.gauge(descActive, map[bool]float64{true: 1}[d.Active], pairs("detector", d.Detector)...)
	}
	e.counter(descChanges, float64(s.Changes))
	e.counter(descPicks, float64(s.Differing), pairs("static", "other")...)
	e.counter(descPicks, float64(s.Picks-s.Differing), pairs("static", "same")...)
}

// Adaptive tells which adaptive policy is in force; nil means none.
func (m *Metrics) Adaptive(p *adaptive.Policy) { m.adaptive.Store(p) }

var _ prometheus.Collector = (*tuning)(nil)
