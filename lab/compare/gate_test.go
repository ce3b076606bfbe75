package compare

import (
	"maps"
	"testing"

	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/predictive"
)

// The gate: what the predictive policy may be worse than a plain rule, as the mean over the seeds. Over
// six seeds the paired differences of attainment had a standard deviation of 0 points on herd and
// tenants and of 6.3 on mixed-gpus against least-request, with a mean of +7.6; the mean E2E was
// 2.3 to 5.6 % longer on herd, by how SLOs are priced, and a fifth shorter or more on the others.
const (
	gatePoints = 2.0  // of attainment, per cent
	gateE2E    = 1.08 // times the rule's mean E2E
)

// better runs the policies and reports what is wrong with the first one, by the others.
func better(t *testing.T, scenario string, load float64, policies ...string) map[string][2]float64 {
	t.Helper()
	s, err := workload.Builtin(scenario)
	if err != nil {
		t.Fatal(err)
	}
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	registry := router.Registry{}
	maps.Copy(registry, baseline.Policies())
	maps.Copy(registry, predictive.Recipes())
	study := Study{
		Arena: &Arena{
			Scenario: s, Table: table, Policies: registry,
			Learner: predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}}, // which rank nothing, and take time
		},
		Policies: policies, Loads: []float64{load}, Seeds: []uint64{1, 2},
	}
	g, err := study.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	worse := map[string][2]float64{}
	for p := 1; p < len(policies); p++ {
		met, err := g.Paired(0, p, 0, func(r *Result) float64 { return 100 * r.Attainment })
		if err != nil {
			t.Fatal(err)
		}
		e2e, err := g.Paired(0, p, 0, func(r *Result) float64 { return r.E2E.Mean })
		if err != nil {
			t.Fatal(err)
		}
		var own float64
		for _, v := range g.Values(p, 0, func(r *Result) float64 { return r.E2E.Mean }) {
			own += v / float64(len(study.Seeds))
		}
		t.Logf("%s at %g: %s meets %.1f points more SLOs than %s, in %.2f times its E2E", scenario, load, policies[0], met.Mean, policies[p], 1+e2e.Mean/own)
		if met.Mean < -gatePoints || e2e.Mean > (gateE2E-1)*own {
			worse[policies[p]] = [2]float64{met.Mean, 1 + e2e.Mean/own}
		}
	}
	return worse
}

// TestPredictiveIsNotWorse than the plain rules on a herd, on prompts of tenants, on mixed GPUs.
func TestPredictiveIsNotWorse(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short: plays eighteen runs of minutes")
	}
	for _, scenario := range []string{"herd", "tenants", "mixed-gpus"} {
		t.Run(scenario, func(t *testing.T) {
			for rule, by := range better(t, scenario, 1, "predictive", "round-robin", "least-request") {
				t.Errorf("meets %.1f points more SLOs than %s in %.2f times its E2E; allowed are -%v and %v", by[0], rule, by[1], gatePoints, gateE2E)
			}
		})
	}
}

// TestGateTellsWorse: a policy that sends everything to the busiest endpoint does not pass.
func TestGateTellsWorse(t *testing.T) {
	if len(better(t, "herd", 1, "always-busiest", "least-request")) != 1 {
		t.Error("always-busiest passes for as good as least-request")
	}
}
