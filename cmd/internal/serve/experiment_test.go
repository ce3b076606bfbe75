package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router/experiment"
)

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// TestExperimentInService: arms reach headers, metrics and observations; a reload that leaves the
// experiment alone keeps its state, with shadows coming and going; one that changes it starts anew.
func TestExperimentInService(t *testing.T) {
	t.Parallel()
	const trial = "answer: {decision_header: true}\nexperiment: {arms: {round-robin: 0.5, least-request: 0.5}, unit: request}\n"
	l, path, _ := startFromFiles(t, trial, newEngine(t, "e1"), newEngine(t, "e2"))
	arms := map[string]int{}
	for i := range 60 {
		a := l.post(context.Background(), fmt.Sprintf("question %d", i))
		if !a.complete() {
			t.Fatalf("%+v", a)
		}
		arms[a.header.Get("x-presage-arm")]++
	}
	if len(arms) != 2 || arms["round-robin"] < 10 || arms["least-request"] < 10 {
		t.Errorf("arms in headers: %v", arms)
	}
	l.settled()
	for arm, n := range arms {
		for series, want := range map[string]int{
			`presage_experiment_requests_total{arm="` + arm + `"}`:       n,
			`presage_ttft_seconds_count{arm="` + arm + `",model="demo"}`: n,
		} {
			if got := l.metric(series); got != fmt.Sprint(want) {
				t.Errorf("%s: %q, want %d", series, got, want)
			}
		}
	}
	x, _ := experiment.Of(l.router.Policy())
	if s := x.Status(); s.Control != "round-robin" || s.Arms[0].Ended+s.Arms[1].Ended != 60 {
		t.Errorf("%+v", s)
	}
	reload := func(text string) *experiment.Experiment {
		t.Helper()
		write(t, path, head+text)
		if err := l.Reload(); err != nil {
			t.Fatal(err)
		}
		e, _ := experiment.Of(l.router.Policy())
		return e
	}
	if reload(trial+"drain: {timeout: 0s}\n") != x || reload(trial+"shadow: [p2c]\n") != x {
		t.Error("an unchanged experiment was made anew")
	}
	for i := range 200 {
		if a := l.post(context.Background(), fmt.Sprintf("another %d", i)); !a.complete() {
			t.Fatalf("%+v", a)
		}
	}
	if a, b := l.metric(`presage_shadow_decisions_total{agrees="true",policy="p2c"}`), l.metric(`presage_shadow_decisions_total{agrees="false",policy="p2c"}`); a == "" || b == "" || a == "0" && b == "0" {
		t.Errorf("the shadow agreed %q and disagreed %q times", a, b)
	}
	if reload(trial) != x {
		t.Error("an experiment was made anew because its shadow left")
	}
	if y := reload(strings.ReplaceAll(trial, "0.5", "0.50000001")); y == nil || y == x {
		t.Error("a changed experiment was kept")
	}
	if reload("policy: round-robin\n") != nil || l.router.Policy().Name() != "round-robin" {
		t.Error("the experiment outlived its configuration")
	}
}

// TestGuardrailTripIsLogged: an arm whose policy sends all to a broken endpoint is ended, with a line
// that says why.
func TestGuardrailTripIsLogged(t *testing.T) {
	t.Parallel()
	var log lines
	c := testConfig()
	c.Outliers = false
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1")), Log: slog.New(slog.NewTextHandler(&log, nil))})
	next := *c
	next.Experiment.Arms = append(next.Experiment.Arms, armsOf("round-robin", "least-request")...)
	next.Experiment.Control, next.Experiment.Unit = "round-robin", "request"
	p, err := l.compose(c, &next)
	if err != nil {
		t.Fatal(err)
	}
	l.use(p)
	x, _ := experiment.Of(p)
	for range 2000 {
		o := &features.Observation{At: time.Unix(1000, 0), Status: 200, Cause: fleet.Complete}
		if o.Arm = "round-robin"; x.Status().Arms[0].Ended > x.Status().Arms[1].Ended {
			o.Arm, o.Status, o.Cause = "least-request", 500, fleet.UpstreamError
		}
		p.(*experiment.Experiment).Observe(o)
	}
	if !log.has("experiment ended by a guardrail") || !log.has("errors: arm least-request is worse than control round-robin") {
		t.Errorf("the log: %s", log.text.String())
	}
	if got := l.metric(`presage_experiment_guardrail_trips_total{guardrail="errors"}`); got != "1" {
		t.Errorf("trips: %q", got)
	}
}

func armsOf(names ...string) (arms []config.Arm) {
	for _, n := range names {
		arms = append(arms, config.Arm{Policy: n, Share: 1 / float64(len(names))})
	}
	return arms
}

// TestFailingEndpointIsEjected: an engine that answers 500 gets three requests, then only probes; it is
// shown, counted and logged, and clients are served by the other.
func TestFailingEndpointIsEjected(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	broken := &engine{name: "e2", release: make(chan struct{})}
	broken.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, enginePage)
			return
		}
		asked.Add(1)
		http.Error(w, "engine dead", http.StatusInternalServerError)
	}))
	t.Cleanup(broken.Close)
	var log lines
	c := testConfig()
	c.Policy = "least-request"
	l := newLab(t, c, Deps{Endpoints: endpoints(newEngine(t, "e1"), broken), Log: slog.New(slog.NewTextHandler(&log, nil))})
	bad := 0
	for i := range 100 {
		if a := l.post(context.Background(), fmt.Sprintf("question %d", i)); !a.complete() {
			bad++
		}
	}
	if bad < 3 || bad > 4 || asked.Load() != int64(bad) { // a probe may fall within a slow run
		t.Errorf("%d requests failed, %d reached it", bad, asked.Load())
	}
	if !log.has("endpoint ejected") || !log.has("3 failures in a row, the last: status 500") {
		t.Errorf("the log: %s", log.text.String())
	}
	if got := l.metric(`presage_endpoint_ejections_total{cause="failures",endpoint="e2"}`); got != "1" {
		t.Errorf("ejections: %q", got)
	}
	if got := l.metric(`presage_endpoints{state="ejected"}`); got != "1" {
		t.Errorf("ejected: %q", got)
	}
	if _, page := l.admin("/endpoints"); !strings.Contains(page, `"state":"ejected"`) || !strings.Contains(page, `"cause":"failures"`) {
		t.Errorf("the page: %s", page)
	}
}
