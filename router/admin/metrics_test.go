package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/features/scrape"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router"
)

// counted is a router with metrics, and its page.
type counted struct {
	m      *Metrics
	router *router.Router
	reg    *prometheus.Registry
}

func newCounted(t testing.TB, endpoints int) *counted {
	t.Helper()
	c := &counted{reg: telemetry.NewRegistry("presage", telemetry.Build{Version: "v1"})}
	f := pool(t, endpoints)
	m, err := NewMetrics(MetricsOptions{Registry: c.reg, Fleet: f, Now: func() time.Time { return t0.Add(time.Second) },
		SLO: []request.SLO{{TTFT: 1200 * time.Millisecond, ITL: 55 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	c.m = m
	c.router = router.New(router.Options{Fleet: f, Policy: policy(t, "weighted"), Recorder: m, Observer: m})
	return c
}

func (c *counted) page() string {
	rec := httptest.NewRecorder()
	telemetry.Page(c.reg).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return rec.Body.String()
}

// want fails for each line that is not on the page.
func (c *counted) want(t *testing.T, lines ...string) {
	t.Helper()
	page := "\n" + c.page()
	for _, l := range lines {
		if !strings.Contains(page, "\n"+l+"\n") {
			name, _, _ := strings.Cut(l, "{")
			name, _, _ = strings.Cut(name, " ")
			var near []string
			for p := range strings.SplitSeq(page, "\n") {
				if strings.HasPrefix(p, name) {
					near = append(near, p)
				}
			}
			t.Errorf("%s is not on the page; it has\n  %s", l, strings.Join(near, "\n  "))
		}
	}
}

func (c *counted) run(t testing.TB, req *request.Request, ttft time.Duration, cause fleet.Cause) {
	t.Helper()
	var fl router.Flight
	if err := c.router.Route(&router.Ask{Now: t0, Req: req}, &fl); err != nil {
		t.Fatal(err)
	}
	if ttft > 0 {
		fl.Tokens(t0.Add(ttft), 1)
		fl.Tokens(t0.Add(ttft+450*time.Millisecond), 9)
	}
	fl.Finish(t0.Add(ttft+450*time.Millisecond), &router.Outcome{Cause: cause, Usage: router.Usage{Prompt: 1000, Cached: 640, Output: 10}})
}

func TestRequestMetrics(t *testing.T) {
	c := newCounted(t, 3)
	c.run(t, prompt(1000), 1200*time.Millisecond, fleet.Complete) // misses its own SLO of 1 s
	c.run(t, prompt(1000), 100*time.Millisecond, fleet.Complete)
	c.run(t, prompt(1000), 100*time.Millisecond, fleet.ClientGone)
	c.run(t, prompt(1000), 0, fleet.UpstreamError)
	plain := prompt(1000)
	plain.SLO, plain.Model = request.SLO{}, ""
	c.run(t, plain, 100*time.Millisecond, fleet.Complete)
	c.want(t,
		`presage_ttft_seconds_bucket{arm="none",model="llama-3.1-8b",le="1"} 2`,
		`presage_ttft_seconds_bucket{arm="none",model="llama-3.1-8b",le="1.2"} 3`, // the configured SLO is a bound
		`presage_ttft_seconds_count{arm="none",model="none"} 1`,
		`presage_itl_seconds_bucket{arm="none",model="llama-3.1-8b",le="0.05"} 2`,
		`presage_itl_seconds_bucket{arm="none",model="llama-3.1-8b",le="0.055"} 2`,
		`presage_request_duration_seconds_count{arm="none",model="llama-3.1-8b"} 2`,
		`presage_prompt_tokens_total{model="llama-3.1-8b"} 2000`,
		`presage_prompt_cached_tokens_total{model="llama-3.1-8b"} 1280`,
		`presage_output_tokens_total{model="llama-3.1-8b"} 20`,
		`presage_slo_requests_total{arm="none",model="llama-3.1-8b"} 3`, // all but the one that its client gave up
		`presage_slo_met_total{arm="none",model="llama-3.1-8b"} 1`,
		`presage_slo_misses_total{cause="unknown",model="llama-3.1-8b",slo="ttft"} 1`,
	)
	if strings.Contains(c.page(), `presage_slo_requests_total{arm="none",model="none"}`) {
		t.Error("a request without an SLO counts")
	}
}

func TestDecisionMetrics(t *testing.T) {
	c := newCounted(t, 4)
	var snap fleet.Snapshot
	c.router.Fleet().Snapshot(t0, &snap)
	stale := &snap.States[3]
	c.router.Fleet().SetLoad(fleet.Ref{Slot: stale.Slot, Instance: stale.Instance}, &fleet.Load{At: t0.Add(-time.Minute), Errors: 7})
	for range 5 {
		c.run(t, prompt(640), 0, fleet.Complete)
	}
	c.router.SetPolicy(broken{})
	c.run(t, prompt(640), 0, fleet.Complete)
	c.m.Decided("weighted", 40*time.Microsecond)
	c.want(t,
		`presage_decisions_total{policy="weighted",reason="queue"} 5`,
		`presage_decisions_total{policy="fallback",reason="fallback"} 1`,
		`presage_decision_fallbacks_total{cause="panic",policy="broken"} 1`,
		`presage_candidates_filtered_total{filter="stale"} 5`,
		`presage_decision_duration_seconds_bucket{policy="weighted",le="5e-05"} 1`,
		`presage_endpoints{state="ready"} 3`,
		`presage_endpoints{state="stale"} 1`,
		`presage_endpoint_failed_scrapes{endpoint="h100-4"} 7`,
		`presage_endpoint_info{endpoint="h100-1",engine="vllm",gpu="H100",model="llama-3.1-8b",role="both"} 1`,
		`presage_endpoint_scrape_age_seconds{endpoint="h100-1"} 1.04`,
	)
	if strings.Contains(c.page(), `presage_endpoint_kv_usage_ratio{endpoint="h100-4"}`) {
		t.Error("a reading that is not known is on the page")
	}
}

func TestEndpointMetrics(t *testing.T) {
	c := newCounted(t, 2)
	var fl router.Flight
	if err := c.router.Route(&router.Ask{Now: t0, Req: prompt(640)}, &fl); err != nil {
		t.Fatal(err)
	}
	c.want(t,
		`presage_endpoint_decisions_total{endpoint="h100-1"} 1`,
		`presage_endpoint_work_tokens_total{endpoint="h100-1"} 640`,
		`presage_endpoint_inflight_requests{endpoint="h100-1"} 1`,
		`presage_endpoint_inflight_uncached_tokens{endpoint="h100-1"} 640`,
		`presage_endpoint_running_requests{endpoint="h100-2"} 1`,
		`presage_endpoint_waiting_requests{endpoint="h100-2"} 1`,
		`presage_endpoint_kv_usage_ratio{endpoint="h100-1"} 0`,
		`presage_endpoint_foreign_requests{endpoint="h100-2"} 2`,
		`presage_endpoint_foreign_requests{endpoint="h100-1"} 0`,
	)
	fl.Tokens(t0.Add(250*time.Millisecond), 1)
	fl.Finish(t0.Add(time.Second), &router.Outcome{Cause: fleet.Complete, Usage: router.Usage{Cached: -1, Output: -1}})
	c.want(t, `presage_endpoint_ttft_seconds_sum{endpoint="h100-1"} 0.25`, `presage_endpoint_ttft_seconds_count{endpoint="h100-1"} 1`)
	if _, err := c.router.Fleet().Sync(t0, nil); err != nil {
		t.Fatal(err)
	}
	if page := c.page(); strings.Contains(page, `endpoint="`) {
		t.Error("an endpoint that left is still on the page")
	}
}

func TestServiceMetrics(t *testing.T) {
	c := newCounted(t, 1)
	if page := c.page(); strings.Contains(page, "presage_config_generation") || strings.Contains(page, "presage_herd_ratio") {
		t.Error("the page tells what is not known yet")
	}
	c.m.Began("a")
	c.m.Began("a")
	c.m.Ended("a", true, "ok")
	c.m.Ended("", false, "bad_request")
	c.m.Refused(429, "saturated")
	c.m.Refused(400, "bad json")
	c.m.BadUsage()
	c.m.StreamOpened()
	c.m.StreamOpened()
	c.m.StreamClosed("OK")
	c.m.StreamClosed("Canceled")
	c.m.Spent("decide", 30*time.Microsecond)
	c.m.Policy("weighted")
	c.m.Reloaded(time.Unix(1000, 0), 3, true)
	c.m.Reloaded(time.Unix(2000, 0), 3, false)
	c.want(t,
		`presage_inflight_requests{model="a"} 1`,
		`presage_requests_total{model="a",outcome="ok"} 1`,
		`presage_requests_total{model="none",outcome="bad_request"} 1`,
		`presage_shed_total{reason="saturated"} 1`,
		`presage_observations_dropped_total{reason="usage"} 1`,
		`presage_extproc_streams 0`,
		`presage_extproc_stream_errors_total{code="Canceled"} 1`,
		`presage_extproc_seconds_count{phase="decide"} 1`,
		`presage_policy_info{policy="weighted"} 1`,
		`presage_config_generation 3`,
		`presage_config_last_reload_successful 0`,
		`presage_config_last_reload_success_timestamp_seconds 1000`,
	)
	if strings.Contains(c.page(), "bad json") {
		t.Error("a bad request counts as shed")
	}
}

// TestHerdRatio: a policy that piles up shows, one that spreads does not, and little traffic tells nothing.
func TestHerdRatio(t *testing.T) {
	for name, want := range map[string]func(r float64) bool{
		"always-busiest": func(r float64) bool { return r > 7.9 },
		"round-robin":    func(r float64) bool { return r >= 1 && r < 1.05 },
	} {
		c := newCounted(t, 8)
		c.router.SetPolicy(policy(t, name))
		decide := func(now time.Time) {
			if err := c.router.Route(&router.Ask{Now: now, Req: prompt(640)}, &router.Flight{}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 100 {
			decide(t0.Add(time.Duration(n) * 100 * time.Millisecond))
		}
		if r := c.m.herd.ratio(); r != 0 {
			t.Errorf("%s: ratio %v from 100 decisions", name, r)
		}
		for n := range 400 {
			decide(t0.Add(10*time.Second + time.Duration(n)*time.Millisecond))
		}
		if r := c.m.herd.ratio(); !want(r) {
			t.Errorf("%s: ratio %v", name, r)
		}
	}
}

// TestB49SeriesAreBounded: 100,000 model names, hostile ones among them, make few series, and the
// models of the fleet keep theirs.
func TestB49SeriesAreBounded(t *testing.T) {
	c := newCounted(t, 2)
	c.page() // the fleet's models are known from the first page on
	observe := func(model, arm string) {
		c.m.Ended(model, false, "ok")
		if !strings.HasSuffix(arm, "0") { // a tenth will do for the rest
			return
		}
		c.m.Began(model)
		c.m.Observe(&features.Observation{Model: model, Arm: arm, TTFT: time.Second, E2E: time.Second, Cause: fleet.Complete, Endpoint: "h100-1"})
	}
	for i := range 100_000 {
		observe(fmt.Sprintf("model-%d\nforged{x=\"%d\"} 1", i, i), fmt.Sprint("arm-", i))
	}
	observe("llama-3.1-8b", "arm-0")
	families, err := c.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series, models := 0, map[string]bool{}
	for _, f := range families {
		series += len(f.GetMetric())
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "model" {
					models[l.GetValue()] = true
				}
			}
		}
	}
	if len(models) != 34 || !models["llama-3.1-8b"] || !models["other"] { // 32, the fleet's own and other
		t.Errorf("%d models", len(models))
	}
	if series > 1000 {
		t.Errorf("%d series", series)
	}
	for line := range strings.SplitSeq(c.page(), "\n") {
		if strings.HasPrefix(line, "forged") {
			t.Fatalf("a client wrote %q", line)
		}
	}
	if c.m.models.Dropped() == 0 || c.m.arms.Dropped() == 0 {
		t.Error("nothing counted as dropped")
	}
}

// busy is the fleet of the budget: 100 endpoints, 4 models, 2 arms, everything counted at least once.
func busy(t testing.TB) *counted {
	c := newCounted(t, 100)
	reasons := []router.Reason{router.ByCache, router.ByQueue, router.ByMemory, router.ByTie, router.OnlyOne, router.ByExplore}
	for i := range 400 {
		model, arm := fmt.Sprint("model-", i%4), fmt.Sprint("arm-", i/4%2)
		c.m.Observe(&features.Observation{Model: model, Arm: arm, TTFT: time.Duration(i) * 10 * time.Millisecond, ITL: 30 * time.Millisecond,
			E2E: time.Duration(i) * 20 * time.Millisecond, Cause: fleet.Complete, Endpoint: fmt.Sprintf("h100-%d", i%100+1), SLO: request.SLO{TTFT: time.Second}})
		c.m.Ended(model, false, []string{"ok", "upstream_error", "client_gone", "shed"}[i%4])
		c.m.decisions.WithLabelValues([]string{"weighted", "p2c"}[i%2], reasons[i%len(reasons)].String()).Inc()
	}
	c.m.Decided("weighted", time.Millisecond)
	c.m.Spent("decide", time.Millisecond)
	c.m.Spent("relay", time.Millisecond)
	return c
}

// TestSeriesBudget: the page of 100 endpoints stays within 3,100 lines of samples and 400 KB.
func TestSeriesBudget(t *testing.T) {
	page := busy(t).page()
	samples := 0
	for line := range strings.SplitSeq(page, "\n") {
		if line != "" && line[0] != '#' {
			samples++
		}
	}
	if samples > 3100 || len(page) > 400_000 {
		t.Errorf("%d series, %d bytes", samples, len(page))
	}
	t.Logf("%d series, %d bytes", samples, len(page))
}

func TestMetricsRegisterOnce(t *testing.T) {
	c := newCounted(t, 1)
	if _, err := NewMetrics(MetricsOptions{Registry: c.reg, Fleet: &fleet.Fleet{}}); err == nil {
		t.Error("registered twice")
	}
}

// TestRecordingMetricsDoesNotAllocate under the decision lock.
func TestRecordingMetricsDoesNotAllocate(t *testing.T) {
	c := newCounted(t, 100)
	q, d := decided(t, 100)
	c.m.Record(router.ID{}, q, d)
	if n := testing.AllocsPerRun(200, func() { c.m.Record(router.ID{}, q, d) }); n != 0 {
		t.Errorf("%v allocations per decision", n)
	}
}

func BenchmarkGather(b *testing.B) {
	c := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecordMetrics(b *testing.B) {
	c := newCounted(b, 100)
	q, d := decided(b, 100)
	b.ReportAllocs()
	for b.Loop() {
		c.m.Record(router.ID{}, q, d)
	}
}

func TestCacheMetrics(t *testing.T) {
	f := pool(t, 2)
	c := &counted{reg: telemetry.NewRegistry("presage", telemetry.Build{Version: "v1"})}
	var snap fleet.Snapshot
	f.Snapshot(t0, &snap)
	name := snap.States[0].Name
	m, err := NewMetrics(MetricsOptions{
		Registry: c.reg, Fleet: f, Now: func() time.Time { return t0 },
		Prefixes: func() prefix.Stats {
			return prefix.Stats{Blocks: 30, Distinct: 20, Doubted: 1, Evicted: 4, Lost: 3, Restarted: 2, Withdrawn: 1}
		},
		Scrapes: func(now time.Time, dst []scrape.Status) []scrape.Status {
			if !now.Equal(t0) {
				t.Errorf("asked at %v", now)
			}
			st := scrape.Status{Name: name, Took: 250 * time.Millisecond, Pages: 7, Refused: 2, Missing: 3}
			st.Failures[scrape.TimedOut] = 5
			return append(dst, st, scrape.Status{Name: "gone", Pages: 1})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.m = m
	c.want(t, "presage_prefix_blocks 30", "presage_prefix_distinct_blocks 20", "presage_prefix_doubted_endpoints 1",
		`presage_prefix_dropped_blocks_total{cause="evicted"} 4`, `presage_prefix_dropped_blocks_total{cause="lost"} 3`,
		`presage_prefix_dropped_blocks_total{cause="restarted"} 2`, `presage_prefix_dropped_blocks_total{cause="withdrawn"} 1`,
		`presage_endpoint_scrapes_total{endpoint="`+name+`"} 7`, `presage_endpoint_scrape_duration_seconds{endpoint="`+name+`"} 0.25`,
		`presage_endpoint_refused_values_total{endpoint="`+name+`"} 2`, `presage_endpoint_missing_gauges_total{endpoint="`+name+`"} 3`,
		`presage_endpoint_scrape_errors_total{cause="`+scrape.TimedOut.String()+`",endpoint="`+name+`"} 5`)
	if strings.Contains(c.page(), "gone") {
		t.Error("an endpoint that left is on the page")
	}
}
