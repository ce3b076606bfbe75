package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
)

// TestAdaptiveMetrics: the figures are there while an adaptive policy is, and absent otherwise.
func TestAdaptiveMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(MetricsOptions{Registry: registry, Fleet: &fleet.Fleet{}})
	if err != nil {
		t.Fatal(err)
	}
	page := func() string {
		w := httptest.NewRecorder()
		telemetry.Page(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	if strings.Contains(page(), "presage_adaptive_") {
		t.Error("figures of a policy that is not there")
	}
	p, err := adaptive.New(adaptive.Defaults(router.Params{}))
	if err != nil {
		t.Fatal(err)
	}
	m.Adaptive(p)
	text := page()
	for _, line := range []string{
		`presage_adaptive_regime{regime="affinity"} 1`, `presage_adaptive_regime{regime="distribution"} 0`,
		`presage_adaptive_switches_total{to="distribution"} 0`, `presage_adaptive_changes_total 0`,
		`presage_adaptive_detector_ratio{detector="burst"} 0`, `presage_adaptive_detector_active{detector="cache"} 0`,
		`presage_adaptive_picks_total{static="other"} 0`, `presage_adaptive_picks_total{static="same"} 0`,
		`presage_adaptive_weight{scorer="prefix"} 0.3`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no %s", line)
		}
	}
	m.Adaptive(nil)
	if strings.Contains(page(), "presage_adaptive_") {
		t.Error("figures of a policy that left")
	}
}
