package telemetry

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestB49LabelsAreBounded: 100,000 names from clients become a few labels and "other".
func TestB49LabelsAreBounded(t *testing.T) {
	l := NewLabels(32)
	l.Admit("llama-3.1-8b")
	seen := map[string]bool{}
	for i := range 100_000 {
		seen[l.Value(fmt.Sprintf("model-%d", i))] = true
	}
	if len(seen) != 33 || !seen[OtherLabel] {
		t.Errorf("%d labels", len(seen))
	}
	if l.Dropped() != 100_000-32 {
		t.Errorf("%d dropped", l.Dropped())
	}
	l.Admit("late-but-ours")
	for _, ours := range []string{"llama-3.1-8b", "late-but-ours", "model-7"} {
		if got := l.Value(ours); got != ours {
			t.Errorf("%s became %s", ours, got)
		}
	}
	for in, want := range map[string]string{"": "none", "model-99999": OtherLabel, strings.Repeat("y", 300): OtherLabel} {
		if got := l.Value(in); got != want {
			t.Errorf("%.20q became %q, want %q", in, got, want)
		}
	}
	fresh := NewLabels(4)
	if got := fresh.Value("a\nb"); got != `a\nb` {
		t.Errorf("label %q", got)
	}
	for i := range 100 {
		fresh.Admit(fmt.Sprint("churn-", i))
		fresh.Value(fmt.Sprint("client-", i))
	}
	names := 0
	fresh.known.Range(func(any, any) bool { names++; return true })
	if names != 8 || fresh.Value("churn-3") != "churn-3" || fresh.Value("churn-4") != OtherLabel {
		t.Errorf("%d names for a cap of 4", names)
	}
}

func TestLabelsConcurrently(t *testing.T) {
	l := NewLabels(16)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				l.Value(fmt.Sprint(i % 64))
				l.Admit(fmt.Sprint(i % 64))
			}
		})
	}
	wg.Wait()
	n := 0
	l.known.Range(func(any, any) bool { n++; return true })
	if n > 32 {
		t.Errorf("%d names for a cap of 16", n)
	}
}

func TestWithLimits(t *testing.T) {
	got := WithLimits([]float64{.5, 1, 2}, 1200*time.Millisecond, time.Second, 0, -time.Second, 10*time.Second)
	if want := []float64{.5, 1, 1.2, 2, 10}; !slices.Equal(got, want) {
		t.Errorf("bounds %v, want %v", got, want)
	}
	for _, b := range [][]float64{TTFTBounds, ITLBounds, RequestBounds, DecisionBounds} {
		if !slices.IsSorted(b) || len(b) > 24 {
			t.Errorf("bounds %v", b)
		}
	}
}

func TestBuildInfo(t *testing.T) {
	got := buildOf(&debug.BuildInfo{GoVersion: "go1.26.0", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}})
	if diff := cmp.Diff(Build{Version: "devel", Revision: "abc+changes", Go: "go1.26.0"}, got); diff != "" {
		t.Error(diff)
	}
	if got := buildOf(&debug.BuildInfo{}).String(); got != "devel (unknown, )" {
		t.Error(got)
	}
	if ReadBuild().Go == "" {
		t.Error("no Go release")
	}
}

// TestPage: the page carries build, process and own metrics, and no exemplars.
func TestPage(t *testing.T) {
	r := NewRegistry("presage", Build{Version: "v1", Revision: "abc", Go: "go1.26"})
	h := prometheus.NewHistogram(Histogram("presage_ttft_seconds", "Time to first token.", WithLimits(TTFTBounds, 1200*time.Millisecond)))
	r.MustRegister(h)
	h.(prometheus.ExemplarObserver).ObserveWithExemplar(1.2, prometheus.Labels{"request": "r-1"})
	h.Observe(1.3)
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	req.Header.Set("Accept", "application/openmetrics-text") // the format that would show exemplars
	Page(r).ServeHTTP(rec, req)
	body, _ := io.ReadAll(rec.Body)
	text := string(body)
	for _, want := range []string{
		`presage_build_info{go="go1.26",revision="abc",version="v1"} 1`,
		`presage_ttft_seconds_bucket{le="1.2"} 1`, // exactly the requests that met an SLO of 1.2 s
		`presage_ttft_seconds_count 2`,
		"go_goroutines ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not on the page", want)
		}
	}
	if strings.Contains(text, "r-1") {
		t.Error("an exemplar is on the page")
	}
}
