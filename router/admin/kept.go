package admin

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Logged is how the log of finished requests fares.
type Logged struct {
	Rows    map[string]uint64 // by result: written, or why not; the same keys at all times
	Removed uint64            // hours, or parts of the last one, removed by age or size
	Bytes   int64             // on disk at the last look
	Oldest  time.Time         // hour of the first row; zero: there are none
}

// logbook reads how the log fares when the page is asked for.
type logbook struct {
	state func() Logged // nil: nothing is logged
	now   func() time.Time
}

var (
	descRows        = desc("trace_rows_total", "Finished requests for the log, by result: written, or why they were dropped.", "result")
	descTraceBytes  = desc("trace_bytes", "Size of the log on disk, at the last look.")
	descTraceAge    = desc("trace_age_seconds", "Time since the hour of the oldest row of the log; absent without rows.")
	descTraceHours  = desc("trace_removed_total", "Hours of the log, or parts of the last one, removed by age or size.")
	descModelFiles  = desc("model_files_total", "Model files read and written, by result.", "result")
	traceCollection = []*prometheus.Desc{descRows, descTraceBytes, descTraceAge, descTraceHours}
)

// Describe implements [prometheus.Collector].
func (b *logbook) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range traceCollection {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (b *logbook) Collect(ch chan<- prometheus.Metric) {
	if b.state == nil {
		return
	}
	e, l := emitter(ch), b.state()
	e.results(descRows, l.Rows)
	e.gauge(descTraceBytes, float64(l.Bytes))
	e.counter(descTraceHours, float64(l.Removed))
	if !l.Oldest.IsZero() {
		e.gauge(descTraceAge, max(0, b.now().Sub(l.Oldest).Seconds()))
	}
}

func (e emitter) results(d *prometheus.Desc, counts map[string]uint64) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		e.counter(d, float64(counts[name]), pairs("result", name)...)
	}
}

var _ prometheus.Collector = (*logbook)(nil)
