package admin

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// children are the series of one metric by the values of its labels: an array of strings, in the order of
// the labels. Asking the metric itself hashes and locks, for every message of every stream. Labels are
// capped, and so are children. Methods are safe for concurrent use.
type children[K comparable, M any] struct {
	known atomic.Pointer[map[K]M] // replaced, never changed
	mu    sync.Mutex              // guards replacing it
	child func(K) M
}

// of returns the series, which the metric has from then on.
func (c *children[K, M]) of(k K) M {
	if known := c.known.Load(); known != nil {
		if m, ok := (*known)[k]; ok {
			return m
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.child(k)
	next := map[K]M{k: m}
	if known := c.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	c.known.Store(&next)
	return m
}

type (
	one = [1]string // label values
	two = [2]string
)

// hot are the series that every request touches.
type hot struct {
	requests            children[two, prometheus.Counter]
	inflight            children[one, prometheus.Gauge]
	ttft, itl, duration children[two, prometheus.Observer]
	prompt, cached      children[one, prometheus.Counter]
	output              children[one, prometheus.Counter]
	sloTotal, sloMet    children[two, prometheus.Counter]
	decisions           children[two, prometheus.Counter]
	deciding, spent     children[one, prometheus.Observer]

	foretoldTTFT, foretoldITL children[one, prometheus.Observer]
}

// bind makes the series those of the metrics.
func (h *hot) bind(m *Metrics) {
	h.requests.child = func(k two) prometheus.Counter { return m.requests.WithLabelValues(k[:]...) }
	h.inflight.child = func(k one) prometheus.Gauge { return m.inflight.WithLabelValues(k[:]...) }
	h.ttft.child = func(k two) prometheus.Observer { return m.ttft.WithLabelValues(k[:]...) }
	h.itl.child = func(k two) prometheus.Observer { return m.itl.WithLabelValues(k[:]...) }
	h.duration.child = func(k two) prometheus.Observer { return m.duration.WithLabelValues(k[:]...) }
	h.prompt.child = func(k one) prometheus.Counter { return m.prompt.WithLabelValues(k[:]...) }
	h.cached.child = func(k one) prometheus.Counter { return m.cached.WithLabelValues(k[:]...) }
	h.output.child = func(k one) prometheus.Counter { return m.output.WithLabelValues(k[:]...) }
	h.sloTotal.child = func(k two) prometheus.Counter { return m.sloTotal.WithLabelValues(k[:]...) }
	h.sloMet.child = func(k two) prometheus.Counter { return m.sloMet.WithLabelValues(k[:]...) }
	h.decisions.child = func(k two) prometheus.Counter { return m.decisions.WithLabelValues(k[:]...) }
	h.deciding.child = func(k one) prometheus.Observer { return m.deciding.WithLabelValues(k[:]...) }
	h.spent.child = func(k one) prometheus.Observer { return m.spent.WithLabelValues(k[:]...) }
	h.foretoldTTFT.child = func(k one) prometheus.Observer { return m.foretoldTTFT.WithLabelValues(k[:]...) }
	h.foretoldITL.child = func(k one) prometheus.Observer { return m.foretoldITL.WithLabelValues(k[:]...) }
}
