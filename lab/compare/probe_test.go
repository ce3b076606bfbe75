package compare

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/predictive"
)

func probed(t *testing.T) *Arena {
	t.Helper()
	s, err := workload.Builtin("mixed-gpus")
	if err != nil {
		t.Fatal(err)
	}
	s.Duration, s.Warmup = 40*time.Second, 15*time.Second
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	registry := router.Registry{}
	maps.Copy(registry, baseline.Policies())
	maps.Copy(registry, predictive.Recipes())
	registry["adaptive"] = adaptive.Recipe()
	return &Arena{Scenario: s, Table: table, Policies: registry, Learner: predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}}}
}

// TestProbeChangesNothing of the run that it watches.
func TestProbeChangesNothing(t *testing.T) {
	a := probed(t)
	for _, policy := range []string{"predictive", "adaptive", "round-robin"} {
		want, err := a.Play(policy, 1, 7)
		if err != nil {
			t.Fatal(err)
		}
		p := Probe{Every: 25}
		got, err := a.Watch(policy, 1, 7, &p)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Result{}), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: %s", policy, d)
		}
		if p.Lived.N < got.Requests/2 || p.Lived.N > got.Requests || p.Chosen.N < 20 || p.Random.N < 20 {
			t.Errorf("%s: of %d requests %d lived, %d chosen, %d random", policy, got.Requests, p.Lived.N, p.Chosen.N, p.Random.N)
		}
		for _, h := range []Held{p.Lived, p.Chosen, p.Random} {
			if u := h.Under; u[0] > u[1] || u[1] > u[2] || u[2] > h.N || u[2] == 0 {
				t.Errorf("%s: %+v under rising quantiles", policy, h)
			}
		}
		if len(p.At) < 10 || len(p.Requests) != len(p.Endpoints) || len(p.Requests[0]) != len(p.At) {
			t.Errorf("%s: %d points, %d endpoints", policy, len(p.At), len(p.Endpoints))
		}
		if tuned := policy == "adaptive"; tuned != (len(p.Weights) > 0) || tuned && (len(p.Weights) != len(p.Scorers) || len(p.Weights[0]) != len(p.At)) {
			t.Errorf("%s: weights of %d scorers", policy, len(p.Weights))
		}
	}
}
