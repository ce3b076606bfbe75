package compare

import (
	"testing"

	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
)

// Rules are told the engines' prefill throughput in tokens per second: some 40,000 for an 8B model on
// an H100, less for a larger one.
func TestPeakIsInTokensPerSecond(t *testing.T) {
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	peak := map[string]float64{}
	for _, name := range []string{"herd", "tenants"} {
		s, err := workload.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := s.Cluster(table)
		if err != nil {
			t.Fatal(err)
		}
		peak[name] = (&Arena{Scenario: s, Table: table}).peak(&cfg)
	}
	if p := peak["herd"]; p < 30_000 || p > 60_000 {
		t.Errorf("llama-3.1-8b on an H100: %v tokens per second", p)
	}
	if p := peak["tenants"]; p < 10_000 || p >= peak["herd"] {
		t.Errorf("qwen3-32b on two H100: %v tokens per second", p)
	}
}
