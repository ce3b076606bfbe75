package admin

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/predictor"
)

// maxClasses caps the classes that are shown: hardware, model and engine, of a service.
const maxClasses = 32

// Learning is how the learner of a service is doing.
type Learning struct {
	predictor.Report
	Overrun uint64            // records not learned because more came than could be
	Model   string            // champion that it learned on from; empty: none
	Files   map[string]uint64 // model files read and written, by result; nil: none are
}

// pupil reads how the learner is doing when the page is asked for.
type pupil struct {
	m     *Metrics
	state func() Learning // nil: nobody learns
}

// What the page says of forecasts beside the counts of what became of them.
var (
	descLearned    = desc("forecast_learned_total", "Labels learned: times to first token, mean gaps, and windows of step times.", "target")
	descLost       = desc("observations_dropped_total", "Observations or parts of them that could not be used.", "reason")
	descChampion   = desc("forecast_champion_info", "1, with the member that has the largest say in the forecasts of a class of endpoints, and the champion of the registry that it learned on from.", "class", "kind", "target", "version")
	descFallback   = desc("forecast_fallback", "1 where what was learned of a class went wrong and the prior shipped with the binary forecasts instead.", "class", "target")
	descMemory     = desc("forecast_champion_generation", "Generation of what was learned, as the next decision sees it.")
	descBias       = desc("forecast_bias_ratio", "Foretold over actual, a fading geometric mean of the last hundred; absent before the first.", "target")
	descDrifting   = desc("forecast_drifting", "1 while the errors of the forecasts have lately shifted to one side.", "target")
	descAnswer     = desc("forecast_answer_tokens", "Expected length of an answer, by class of endpoints.", "class")
	descIndexTrust = desc("forecast_prefix_trust_ratio", "Share of the prompt tokens found in the prefix index that engines really held; absent while not known.", "class")
)

// Describe implements [prometheus.Collector].
func (p *pupil) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLearned, descLost, descChampion, descFallback, descMemory, descBias, descDrifting, descAnswer, descIndexTrust, descModelFiles} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (p *pupil) Collect(ch chan<- prometheus.Metric) {
	e := emitter(ch)
	e.counter(descLost, float64(p.m.badUsage.Load()), pairs("reason", "usage")...)
	for _, t := range []struct {
		name string
		c    *checks
	}{{targetTTFT, &p.m.foretold.ttft}, {targetITL, &p.m.foretold.itl}} {
		if bias, drifting, ok := t.c.state(); ok {
			e.gauge(descBias, bias, pairs("target", t.name)...)
			e.gauge(descDrifting, truth(drifting), pairs("target", t.name)...)
		}
	}
	if p.state == nil {
		return
	}
	l := p.state()
	n := &l.Counts
	e.counter(descLearned, float64(n.First), pairs("target", targetTTFT)...)
	e.counter(descLearned, float64(n.Gap), pairs("target", targetITL)...)
	e.counter(descLearned, float64(n.Steps), pairs("target", "step")...)
	e.counter(descLost, float64(l.Overrun), pairs("reason", "overrun")...)
	for d, count := range n.Dropped {
		if d := predictor.Drop(d); d != predictor.Learned {
			e.counter(descLost, float64(count), pairs("reason", strings.ReplaceAll(d.String(), " ", "_"))...)
		}
	}
	e.gauge(descMemory, float64(l.Generation))
	e.results(descModelFiles, l.Files)
	version := "none"
	if l.Model != "" {
		version = telemetry.Clean(l.Model)
	}
	for i := range l.Classes[:min(len(l.Classes), maxClasses)] {
		e.class(&l.Classes[i], version)
	}
}

// class tells of one class of endpoints.
func (e emitter) class(c *predictor.ClassReport, version string) {
	name := className(c.Class)
	e.gauge(descAnswer, c.Answer, pairs("class", name)...)
	if c.Trust == c.Trust {
		e.gauge(descIndexTrust, c.Trust, pairs("class", name)...)
	}
	for t, target := range []string{targetTTFT, targetITL} {
		r := &c.Targets[t]
		kind := predictor.MemberNames[r.Champion]
		if r.Fallback {
			kind = "prior"
		}
		e.gauge(descChampion, 1, pairs("class", name, "kind", kind, "target", target, "version", version)...)
		e.gauge(descFallback, truth(r.Fallback), pairs("class", name, "target", target)...)
	}
}

// className is the label of a class: its model, hardware and engine, "unknown" where it has none.
func className(id fleet.ClassID) string {
	var zero fleet.ClassID
	if id == zero {
		return "unknown"
	}
	c := id.Value()
	name := ""
	for _, part := range []string{c.Model, c.GPU, c.Engine} {
		if part == "" {
			continue
		}
		if name != "" {
			name += " "
		}
		name += part
	}
	if name == "" {
		name = "unknown"
	}
	if c.TP > 1 {
		name += fmt.Sprintf(" tp%d", c.TP)
	}
	return telemetry.Clean(name)
}

func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

var _ prometheus.Collector = (*pupil)(nil)
