package admin

import (
	"net/http"
	"sync"
	"time"
)

// Began tells that a request was routed.
func (m *Metrics) Began(model string) { m.hot.inflight.of(one{m.models.Value(model)}).Inc() }

// Ended tells that a request ended, with the outcome as one of ok, upstream_error, client_gone, shed,
// no_endpoint, bad_request, internal; routed: after Began.
func (m *Metrics) Ended(model string, routed bool, outcome string) {
	label := m.models.Value(model)
	m.hot.requests.of(two{label, outcome}).Inc()
	if routed {
		m.hot.inflight.of(one{label}).Dec()
	}
}

// Refused tells that a request was answered by the service itself, with that status and for a reason
// of a closed set. What was refused for want of capacity counts as shed.
func (m *Metrics) Refused(status int, reason string) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		m.shed.WithLabelValues(reason).Inc()
	}
}

// BadUsage tells that an answer reported impossible usage.
func (m *Metrics) BadUsage() { m.badUsage.Add(1) }

// StreamOpened tells that the gateway opened a stream.
func (m *Metrics) StreamOpened() { m.streams.Inc() }

// StreamClosed tells that a stream ended with that status.
func (m *Metrics) StreamClosed(code string) {
	m.streams.Dec()
	if code != "OK" {
		m.streamErrors.WithLabelValues(code).Inc()
	}
}

// Spent tells how much time the service added in a phase of a closed set.
func (m *Metrics) Spent(phase string, d time.Duration) {
	m.hot.spent.of(one{phase}).Observe(d.Seconds())
}

// Decided tells how long a decision of that policy took, reservation included.
func (m *Metrics) Decided(policy string, d time.Duration) {
	m.hot.deciding.of(one{m.policies.Value(policy)}).Observe(d.Seconds())
}

// Models names models that the configuration or the fleet knows, which get labels of their own
// however many names clients make up.
func (m *Metrics) Models(names ...string) { m.models.Admit(names...) }

// Policy names the policy in force.
func (m *Metrics) Policy(name string) {
	m.policies.Admit(name)
	label := m.policies.Value(name)
	m.policy.Store(&label)
}

// Reloaded tells that a configuration was tried: whether it is in force now, and which generation is.
func (m *Metrics) Reloaded(now time.Time, generation int, ok bool) {
	m.reload.mu.Lock()
	defer m.reload.mu.Unlock()
	m.reload.tried, m.reload.ok, m.reload.generation = true, ok, generation
	if ok {
		m.reload.at = now
	}
}

type reload struct {
	mu         sync.Mutex
	tried, ok  bool
	generation int
	at         time.Time // of the last one that went well
}
