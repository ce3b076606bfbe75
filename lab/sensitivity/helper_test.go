package sensitivity

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/predictive"
)

// ring is a short scenario on mixed hardware, with shared prefixes.
func ring(t *testing.T) *compare.Arena {
	t.Helper()
	s, err := workload.Parse("small.yaml", []byte(`
name: small
about: a minute of prefixes on three engines of two kinds
origin: this test
expects: nothing
duration: 25s
warmup: 10s
loads: [1]
fleet:
  - {count: 2, gpu: H100, model: llama-3.1-8b, tp: 1}
  - {count: 1, gpu: L40S, model: llama-3.1-8b, tp: 1}
slo: {ttft: 400ms, itl: 40ms}
traffic:
  - class: chat
    arrivals: [{poisson: {rate: 16}}]
    prefix: [{groups: 12, tokens: 3000, tenants: true}]
    prompt: {lognormal: {mean: 500, sigma: 1, max: 8000}}
    output: {lognormal: {mean: 200, sigma: 0.7, max: 1000}}
`))
	if err != nil {
		t.Fatal(err)
	}
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	policies := baseline.Policies()
	maps.Copy(policies, predictive.Recipes())
	return &compare.Arena{
		Scenario: s, Table: table, Policies: policies,
		Learner: predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}},
	}
}

// played is the result of the policy under one setting; "" is the plain run.
func played(t *testing.T, a *compare.Arena, policy, dimension, value string) *compare.Result {
	t.Helper()
	var s *Setting
	if dimension != "" {
		c, err := Choose(dimension + "=" + value)
		if err != nil {
			t.Fatal(err)
		}
		s = &c[0].Settings[0]
	}
	r, err := s.play(a, policy, 1, 3)
	if err != nil {
		t.Fatalf("%s %s: %v", dimension, value, err)
	}
	return r
}

func at(s float64) time.Time { return time.Unix(1000, int64(s*1e9)) }

func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000)
}
