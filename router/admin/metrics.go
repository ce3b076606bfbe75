package admin

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/features/scrape"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
	"github.com/presage-router/presage/router/outlier"
)

// Caps of label values, beyond which they are "other". Everything else is a closed set.
const (
	maxModels    = 32
	maxArms      = 4
	maxPolicies  = 16
	maxEndpoints = 256
)

// MetricsOptions are what metrics are made of. Registry and Fleet must be set.
type MetricsOptions struct {
	Registry *prometheus.Registry
	Fleet    *fleet.Fleet
	Now      func() time.Time                                         // the clock, for ages; nil: time.Now
	Prefixes func() prefix.Stats                                      // nil: none are shown
	Scrapes  func(now time.Time, dst []scrape.Status) []scrape.Status // appends how scraping goes; nil: not shown
	Outliers *outlier.Detector                                        // nil: not shown
	Learner  func() Learning                                          // how the learner is doing; nil: not shown
	Trace    func() Logged                                            // how the log of requests fares; nil: there is none
	SLO      []request.SLO                                            // configured levels, which become bucket bounds
}

// Metrics counts decisions and requests. It is a [router.Recorder] and a [router.Observer], and its
// other methods take what the gateway's side and the configuration report. Names that clients choose
// become labels only up to a cap. All methods are safe for concurrent use.
type Metrics struct {
	models, arms, policies *telemetry.Labels

	requests  *prometheus.CounterVec
	inflight  *prometheus.GaugeVec
	ttft      *prometheus.HistogramVec
	itl       *prometheus.HistogramVec
	duration  *prometheus.HistogramVec
	prompt    *prometheus.CounterVec
	cached    *prometheus.CounterVec
	output    *prometheus.CounterVec
	sloTotal  *prometheus.CounterVec
	sloMet    *prometheus.CounterVec
	sloMissed *prometheus.CounterVec

	decisions *prometheus.CounterVec
	deciding  *prometheus.HistogramVec
	fallbacks *prometheus.CounterVec
	filtered  *prometheus.CounterVec

	streams      prometheus.Gauge
	streamErrors *prometheus.CounterVec
	spent        *prometheus.HistogramVec
	shed         *prometheus.CounterVec

	foretoldTTFT, foretoldITL *prometheus.HistogramVec
	forecastError             *prometheus.HistogramVec
	forecastChecked           *prometheus.CounterVec
	forecastCovered           *prometheus.CounterVec

	badUsage atomic.Uint64
	foretold foretold
	hot      hot
	herd     herd
	ttfts    ttfts
	reload   reload
	policy   atomic.Pointer[string]

	adaptive atomic.Pointer[adaptive.Policy]
	composed atomic.Pointer[router.Policy]
}

// NewMetrics registers everything and returns what counts it.
func NewMetrics(o MetricsOptions) (*Metrics, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	var ttft, itl, e2e []time.Duration
	for _, s := range o.SLO {
		ttft, itl, e2e = append(ttft, s.TTFT), append(itl, s.ITL), append(e2e, s.E2E)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "presage_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(telemetry.Histogram("presage_"+name, help, bounds), labels)
	}
	// Times of the service itself are taken for every message: the bounds are fine enough for them, and
	// native buckets would cost more than all else.
	timer := func(name, help string, labels ...string) *prometheus.HistogramVec {
		opts := telemetry.Histogram("presage_"+name, help, telemetry.DecisionBounds)
		opts.NativeHistogramBucketFactor = 0
		return prometheus.NewHistogramVec(opts, labels)
	}
	m := &Metrics{
		models: telemetry.NewLabels(maxModels), arms: telemetry.NewLabels(maxArms), policies: telemetry.NewLabels(maxPolicies),

		requests: counter("requests_total", "Requests by how they ended.", "model", "outcome"),
		inflight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "presage_inflight_requests", Help: "Requests routed and not ended."}, []string{"model"}),
		ttft:     histogram("ttft_seconds", "Time from the decision to the first token.", telemetry.WithLimits(telemetry.TTFTBounds, ttft...), "model", "arm"),
		itl:      histogram("itl_seconds", "Mean gap between tokens after the first.", telemetry.WithLimits(telemetry.ITLBounds, itl...), "model", "arm"),
		duration: histogram("request_duration_seconds", "Time from the decision to the end.", telemetry.WithLimits(telemetry.RequestBounds, e2e...), "model", "arm"),

		prompt: counter("prompt_tokens_total", "Prompt tokens of completed requests.", "model"),
		cached: counter("prompt_cached_tokens_total", "Prompt tokens that engines reported as served from cache.", "model"),
		output: counter("output_tokens_total", "Tokens of completed answers.", "model"),

		sloTotal:  counter("slo_requests_total", "Completed or failed requests that carried an SLO.", "model", "arm"),
		sloMet:    counter("slo_met_total", "Of these, the ones that met every SLO they carried.", "model", "arm"),
		sloMissed: counter("slo_misses_total", "SLOs missed, by SLO and cause.", "model", "slo", "cause"),

		decisions: counter("decisions_total", "Decisions by policy and reason.", "policy", "reason"),
		deciding:  timer("decision_duration_seconds", "Time of one decision, reservation included.", "policy"),
		fallbacks: counter("decision_fallbacks_total", "Decisions that the policy could not make.", "policy", "cause"),
		filtered:  counter("candidates_filtered_total", "Endpoints left out of a decision, by what.", "filter"),

		streams:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "presage_extproc_streams", Help: "Open streams of the gateway."}),
		streamErrors: counter("extproc_stream_errors_total", "Streams that ended with another status than OK, by status.", "code"),
		spent:        timer("extproc_seconds", "Time the service added, by phase.", "phase"),
		shed:         counter("shed_total", "Requests turned away for want of capacity, by reason.", "reason"),

		foretoldTTFT:    histogram("foretold_ttft_seconds", "Median forecasts of the time to first token, for completed requests on the endpoint they were made for.", telemetry.WithLimits(telemetry.TTFTBounds, ttft...), "model"),
		foretoldITL:     histogram("foretold_itl_seconds", "Median forecasts of the mean gap, for the same requests.", telemetry.WithLimits(telemetry.ITLBounds, itl...), "model"),
		forecastError:   histogram("forecast_error_ratio", "Errors of the median forecasts of completed requests, relative to what happened, by whether the policy chose the endpoint or explored.", telemetry.ErrorBounds, "target", "split"),
		forecastChecked: counter("forecast_checked_total", "Forecasts that could be compared with what happened.", "target"),
		forecastCovered: counter("forecast_covered_total", "Of these, the ones where what happened was no more than the quantile foretold.", "target", "quantile"),
	}
	m.hot.bind(m)
	m.ttfts.by = map[string]*sum{}
	if err := errors.Join(m.foretold.ttft.bind(m, targetTTFT), m.foretold.itl.bind(m, targetITL)); err != nil {
		return nil, err
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.inflight, m.ttft, m.itl, m.duration, m.prompt, m.cached, m.output, m.sloTotal, m.sloMet, m.sloMissed,
		m.decisions, m.deciding, m.fallbacks, m.filtered, m.streams, m.streamErrors, m.spent, m.shed,
		m.foretoldTTFT, m.foretoldITL, m.forecastError, m.forecastChecked, m.forecastCovered,
		&collector{m: m, fleet: o.Fleet, now: o.Now, held: o.Prefixes, scraped: o.Scrapes, outliers: o.Outliers},
		&tuning{m: m}, &trial{m: m}, &pupil{m: m, state: o.Learner}, &logbook{state: o.Trace, now: o.Now},
	} {
		if err := o.Registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Record implements [router.Recorder].
func (m *Metrics) Record(_ router.ID, q *router.Query, d *router.Decision) {
	m.hot.decisions.of(two{m.policies.Value(d.Policy), d.Why.Reason.String()}).Inc()
	if d.Failure != "" {
		m.fallbacks.WithLabelValues(m.policies.Value(d.Failed), d.Failure).Inc()
	}
	run, name := 0, "" // neighbours are mostly left out by the same thing
	for _, why := range d.Why.Filtered {
		if why != name && run > 0 {
			m.filtered.WithLabelValues(name).Add(float64(run))
			run = 0
		}
		if name = why; why != "" {
			run++
		}
	}
	if run > 0 {
		m.filtered.WithLabelValues(name).Add(float64(run))
	}
	m.herd.add(q, d.Index)
}

// Observe implements [router.Observer].
func (m *Metrics) Observe(o *features.Observation) {
	model, arm := m.models.Value(o.Model), m.arms.Value(o.Arm)
	if o.TTFT > 0 {
		m.hot.ttft.of(two{model, arm}).Observe(o.TTFT.Seconds())
		m.ttfts.add(o.Endpoint, o.TTFT)
	}
	if o.Cause == fleet.Complete {
		if o.ITL > 0 {
			m.hot.itl.of(two{model, arm}).Observe(o.ITL.Seconds())
		}
		m.hot.duration.of(two{model, arm}).Observe(o.E2E.Seconds())
		m.hot.prompt.of(one{model}).Add(float64(max(o.PromptTokens, 0)))
		m.hot.cached.of(one{model}).Add(float64(max(o.CachedTokens, 0)))
		m.hot.output.of(one{model}).Add(float64(max(o.OutputTokens, 0)))
	}
	m.levels(o, model, arm)
	m.judge(o, model)
}

// levels counts SLOs. A request that the client gave up tells nothing; one that failed missed.
func (m *Metrics) levels(o *features.Observation, model, arm string) {
	if o.SLO == (request.SLO{}) || o.Cause == fleet.ClientGone {
		return
	}
	m.hot.sloTotal.of(two{model, arm}).Inc()
	if o.Cause == fleet.Complete && !missed(o) {
		m.hot.sloMet.of(two{model, arm}).Inc()
	}
	for _, l := range []struct {
		name string
		over bool
	}{{"ttft", over(o.TTFT, o.SLO.TTFT)}, {"itl", over(o.ITL, o.SLO.ITL)}, {"e2e", over(o.E2E, o.SLO.E2E)}} {
		if l.over {
			m.sloMissed.WithLabelValues(model, l.name, "unknown").Inc()
		}
	}
}

var (
	_ router.Recorder = (*Metrics)(nil)
	_ router.Observer = (*Metrics)(nil)
)
