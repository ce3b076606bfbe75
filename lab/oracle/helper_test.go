package oracle

import (
	"maps"
	"testing"

	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/predictive"
)

// arena is where policies play the scenario of that text.
func arena(t testing.TB, text string) *compare.Arena {
	t.Helper()
	s, err := workload.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return arenaOf(t, s)
}

func named(t testing.TB, scenario string) *compare.Arena {
	t.Helper()
	s, err := workload.Open(scenario)
	if err != nil {
		t.Fatal(err)
	}
	return arenaOf(t, s)
}

func arenaOf(t testing.TB, s *workload.Scenario) *compare.Arena {
	t.Helper()
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	policies := baseline.Policies()
	maps.Copy(policies, predictive.Recipes())
	maps.Copy(policies, Recipes())
	return &compare.Arena{
		Scenario: s, Table: table, Policies: policies,
		Learner: predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}},
	}
}
