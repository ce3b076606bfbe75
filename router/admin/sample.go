package admin

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// sample is one figure of one gathering. The library's constant metrics would build and sort the
// labels of an endpoint once per figure; here its figures share them.
type sample struct {
	desc    *prometheus.Desc
	value   float64
	counter bool
	labels  []*dto.LabelPair // sorted by name
}

// Desc implements [prometheus.Metric].
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements [prometheus.Metric].
func (s *sample) Write(m *dto.Metric) error {
	m.Label = s.labels
	if s.counter {
		m.Counter = &dto.Counter{Value: &s.value}
	} else {
		m.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// pairs returns labels from names and values in turn; names must be in order.
func pairs(namesAndValues ...string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(namesAndValues)/2)
	for i := 0; i < len(namesAndValues); i += 2 {
		out = append(out, &dto.LabelPair{Name: &namesAndValues[i], Value: &namesAndValues[i+1]})
	}
	return out
}

// emitter sends metrics of one gathering.
type emitter chan<- prometheus.Metric

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...*dto.LabelPair) {
	e <- &sample{desc: d, value: v, labels: labels}
}

func (e emitter) counter(d *prometheus.Desc, v float64, labels ...*dto.LabelPair) {
	e <- &sample{desc: d, value: v, counter: true, labels: labels}
}

var _ prometheus.Metric = (*sample)(nil)
