package admin

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/experiment"
	"github.com/presage-router/presage/router/outlier"
)

// TestEjectedEndpointIsShown: on the endpoints page, in the metrics, and in the explanations of a
// decision that left it out and of the probe that it got.
func TestEjectedEndpointIsShown(t *testing.T) {
	d := &outlier.Detector{}
	registry := prometheus.NewRegistry()
	now := t0.Add(time.Second)
	s := newSite(t, 3, nil)
	s.router = router.New(router.Options{Fleet: s.router.Fleet(), Policy: policy(t, "round-robin"), Recorder: s.ring, Observer: s.ring, Seed: 11, Outliers: d})
	if _, err := NewMetrics(MetricsOptions{Registry: registry, Fleet: s.router.Fleet(), Outliers: d, Now: func() time.Time { return now }}); err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Address: "127.0.0.1:9090", Router: s.router, Ring: s.ring, Now: func() time.Time { return now }, Metrics: telemetry.Page(registry)})
	if err != nil {
		t.Fatal(err)
	}
	s.handler = h
	send := func(fail string) *router.Flight {
		f := &router.Flight{}
		if err := s.router.Route(&router.Ask{Now: now, Req: &request.Request{Stream: true, Choices: 1, PromptTokens: 10}}, f); err != nil {
			t.Fatal(err)
		}
		out := router.Outcome{Cause: fleet.Complete, Usage: router.Usage{Prompt: -1, Cached: -1, Output: -1}}
		if f.Status(200); f.Picked.Name == fail {
			f.Status(500)
			out.Cause = fleet.UpstreamError
		} else {
			f.Tokens(now, 1)
		}
		f.Finish(now, &out)
		return f
	}
	bad := send("").Picked.Name
	for range 12 {
		send(bad)
	}
	page := func(path string) string { return s.call(http.MethodGet, path).Body.String() }
	if got := page("/endpoints"); strings.Count(got, `"state":"ejected"`) != 2 || !strings.Contains(got, `"detail":"3 failures in a row, the last: status 500"`) {
		t.Errorf("endpoints: %s", got)
	}
	for _, want := range []string{
		`presage_endpoints{state="ejected"} 1`, `presage_endpoint_ejections_total{cause="failures",endpoint="` + bad + `"} 1`,
		`presage_endpoint_probes_total{endpoint="` + bad + `"} 0`,
	} {
		if !strings.Contains(page("/metrics"), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if got := page("/explain?format=text&last=1"); !strings.Contains(got, "ejected: "+bad) {
		t.Errorf("a decision without it: %s", got)
	}
	now = now.Add(6 * time.Second)
	if f := send(""); f.Picked.Name != bad || f.Decision.Policy != "probe" {
		t.Fatalf("%+v", f.Decision)
	}
	if got := page("/explain?format=text&last=1"); !strings.Contains(got, "-> "+bad) || !strings.Contains(got, "exploratory pick") {
		t.Errorf("the probe: %s", got)
	}
	if got := page("/metrics"); !strings.Contains(got, `presage_endpoint_recoveries_total{endpoint="`+bad+`"} 1`) {
		t.Error("no recovery")
	}
}

// TestExperimentMetrics: arms, trips and shadows are there while an experiment is in force.
func TestExperimentMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(MetricsOptions{Registry: registry, Fleet: &fleet.Fleet{}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := experiment.New(experiment.Options{Arms: []experiment.Arm{
		{Name: "a", Share: 0.5, Policy: policy(t, "round-robin")}, {Name: "b", Share: 0.5, Policy: policy(t, "least-request")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.Composed(experiment.NewShadow(x, []router.Policy{policy(t, "p2c")}, 1, 1))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		got[f.GetName()] = len(f.GetMetric())
	}
	for name, n := range map[string]int{
		"presage_experiment_requests_total": 2, "presage_experiment_guardrail_trips_total": 3, "presage_shadow_decisions_total": 2, "presage_shadow_failures_total": 2,
	} {
		if got[name] != n {
			t.Errorf("%d series of %s, want %d", got[name], name, n)
		}
	}
	m.Composed(policy(t, "p2c"))
	if families, err = registry.Gather(); err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "presage_experiment") || strings.HasPrefix(f.GetName(), "presage_shadow") {
			t.Errorf("%s outlives its experiment", f.GetName())
		}
	}
}
