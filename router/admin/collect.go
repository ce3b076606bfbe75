package admin

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/scrape"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router/outlier"
)

// collector reads the fleet when the page is asked for.
type collector struct {
	m        *Metrics
	fleet    *fleet.Fleet
	now      func() time.Time
	held     func() prefix.Stats                              // nil: there is no index
	scraped  func(time.Time, []scrape.Status) []scrape.Status // nil: nobody scrapes
	outliers *outlier.Detector                                // nil: nobody is kept out
	hidden   atomic.Uint64                                    // endpoints not shown, summed over gatherings
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("presage_"+name, help, labels, nil)
}

// What the page says of the fleet and of the service as a whole.
var (
	descStates     = desc("endpoints", "Endpoints by state.", "state")
	descInfo       = desc("endpoint_info", "1, with what the endpoint is.", "endpoint", "model", "engine", "gpu", "role")
	descDecisions  = desc("endpoint_decisions_total", "Requests dispatched to the endpoint since it joined.", "endpoint")
	descWork       = desc("endpoint_work_tokens_total", "Uncached prompt tokens dispatched to the endpoint since it joined.", "endpoint")
	descRequests   = desc("endpoint_inflight_requests", "Requests of ours in flight.", "endpoint")
	descUncached   = desc("endpoint_inflight_uncached_tokens", "Uncached prompt tokens of ours before their first token.", "endpoint")
	descRunning    = desc("endpoint_running_requests", "Requests in the engine's batch, as it says.", "endpoint")
	descWaiting    = desc("endpoint_waiting_requests", "Requests queued in the engine, as it says.", "endpoint")
	descKV         = desc("endpoint_kv_usage_ratio", "Share of KV blocks in use, as the engine says.", "endpoint")
	descForeign    = desc("endpoint_foreign_requests", "Requests the engine reports beyond ours.", "endpoint")
	descAge        = desc("endpoint_scrape_age_seconds", "Age of the endpoint's metrics page; absent before the first.", "endpoint")
	descFailing    = desc("endpoint_failed_scrapes", "Scrapes failed in a row since the last good one.", "endpoint")
	descTTFT       = desc("endpoint_ttft_seconds", "Times to first token.", "endpoint")
	descHerd       = desc("herd_ratio", "Largest over mean of uncached tokens newly placed per endpoint, last window; absent before the first.")
	descPolicy     = desc("policy_info", "1, with the policy in force.", "policy")
	descGeneration = desc("config_generation", "Generation of the configuration in force.")
	descReloadOK   = desc("config_last_reload_successful", "1 if the configuration tried last is in force.")
	descReloadTime = desc("config_last_reload_success_timestamp_seconds", "When a configuration last came into force.")
	descDropped    = desc("labels_dropped_total", "Values that became \"other\", by label.", "label")
)

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descStates, descInfo, descDecisions, descWork, descRequests, descUncached, descRunning, descWaiting,
		descKV, descForeign, descAge, descFailing, descTTFT, descHerd, descPolicy, descGeneration, descReloadOK, descReloadTime, descDropped,
		descHeld, descDistinct, descDoubted, descGone, descScrapes, descScrapeErrors, descScrapeTime, descRefused, descMissing, descRestarts} {
		ch <- d
	}
	describeTrust(ch)
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	e := emitter(ch)
	now := c.now()
	var snap fleet.Snapshot
	c.fleet.Snapshot(now, &snap)
	states := map[string]int{"ready": 0, "warming": 0, "stale": 0, "draining": 0, "ejected": 0}
	trust := trustOf(c.outliers)
	shown := make(map[string]bool, len(snap.States))
	for i := range snap.States {
		s := &snap.States[i]
		states[trust.state(s, now)]++
		c.m.models.Admit(s.Model)
		c.m.models.Admit(s.Adapters...)
		if len(shown) >= maxEndpoints {
			c.hidden.Add(1) // summed figures of many endpoints would mislead: what is past the cap is only counted
			continue
		}
		shown[s.Name] = true
		c.endpoint(e, s, telemetry.Clean(s.Name), now)
		trust.tell(e, s, s.Name)
	}
	for name, n := range states {
		e.gauge(descStates, float64(n), pairs("state", name)...)
	}
	for name, t := range c.m.ttfts.take(shown) {
		ch <- prometheus.MustNewConstSummary(descTTFT, t.count, t.seconds, nil, telemetry.Clean(name))
	}
	if c.held != nil {
		st := c.held()
		e.prefixes(&st)
	}
	if c.scraped != nil {
		c.scrapes(e, now, shown)
	}
	c.service(e)
}

// endpoint says what is known of one endpoint; what its page does not say is absent.
func (c *collector) endpoint(e emitter, s *fleet.State, name string, now time.Time) {
	e.gauge(descInfo, 1, pairs("endpoint", name, "engine", telemetry.Clean(s.Engine), "gpu", telemetry.Clean(s.GPU),
		"model", telemetry.Clean(s.Model), "role", s.Role.String())...)
	is := pairs("endpoint", name)
	e.counter(descDecisions, float64(s.Begun), is...)
	e.counter(descWork, float64(s.BegunUncached), is...)
	e.gauge(descRequests, float64(s.Requests), is...)
	e.gauge(descUncached, float64(s.Uncached), is...)
	if s.At.IsZero() {
		return
	}
	e.gauge(descAge, now.Sub(s.At).Seconds(), is...)
	e.gauge(descFailing, float64(s.Errors), is...)
	e.counter(descRestarts, float64(s.Restarts), is...)
	if s.Known.Has(fleet.KnowRunning) {
		e.gauge(descRunning, float64(s.Running), is...)
	}
	if s.Known.Has(fleet.KnowWaiting) {
		e.gauge(descWaiting, float64(s.Waiting), is...)
	}
	if kv := finite(float64(s.KVUsage)); s.Known.Has(fleet.KnowKV) && kv != nil {
		e.gauge(descKV, *kv, is...)
	}
	if s.Known.Has(fleet.KnowRunning | fleet.KnowWaiting) {
		e.gauge(descForeign, float64(max(0, s.Running+s.Waiting-s.Requests)), is...)
	}
}

// service says what is known of the service as a whole.
func (c *collector) service(e emitter) {
	if r := c.m.herd.ratio(); r > 0 {
		e.gauge(descHerd, r)
	}
	if p := c.m.policy.Load(); p != nil {
		e.gauge(descPolicy, 1, pairs("policy", *p)...)
	}
	r := &c.m.reload
	r.mu.Lock()
	tried, ok, generation, at := r.tried, r.ok, r.generation, r.at
	r.mu.Unlock()
	if tried {
		e.gauge(descGeneration, float64(generation))
		e.gauge(descReloadOK, map[bool]float64{true: 1}[ok])
		if !at.IsZero() {
			e.gauge(descReloadTime, float64(at.UnixNano())/1e9)
		}
	}
	e.counter(descDropped, float64(c.m.models.Dropped()), pairs("label", "model")...)
	e.counter(descDropped, float64(c.m.arms.Dropped()), pairs("label", "arm")...)
	e.counter(descDropped, float64(c.m.policies.Dropped()), pairs("label", "policy")...)
	e.counter(descDropped, float64(c.hidden.Load()), pairs("label", "endpoint")...)
}

var _ prometheus.Collector = (*collector)(nil)
