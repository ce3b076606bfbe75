package admin

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features/fleet"
)

// TestGoldenReference keeps the reference page of the metrics equal to what is registered.
func TestGoldenReference(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewMetrics(MetricsOptions{Registry: registry, Fleet: &fleet.Fleet{}}); err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^Desc\{fqName: "([a-z_]+)", help: "(.*)", unit: "", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)
	ch := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(ch)
		close(ch)
	}()
	var rows []string
	for d := range ch {
		m := form.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		labels := "none"
		if m[3] != "" {
			labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
		}
		rows = append(rows, "| `"+m[1]+"` | "+labels+" | "+strings.ReplaceAll(m[2], `\"`, `"`)+" |\n")
	}
	slices.Sort(rows)
	got := "# Metrics of the service\n\n<!-- Generated from router/admin; rewrite it with: make golden -->\n\n" +
		"`GET /metrics` of the admin address. Names ending in `_total` are counters; in `_seconds`, `_ratio`, `_tokens` and `_requests` gauges or\n" +
		"histograms, in base units. Labels that clients choose are capped: what is past the cap is `other`. Build, process and Go runtime\n" +
		"metrics come with it.\n\n| name | labels | meaning |\n|---|---|---|\n" + strings.Join(rows, "")
	path := filepath.Join("..", "..", "docs", "reference", "metrics.md")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale; rewrite it with: make golden\n%s", path, diff)
	}
}
