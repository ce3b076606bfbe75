package cluster

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/experiment"
	"github.com/presage-router/presage/router/outlier"
)

// TestAAExperiments: of 20 experiments of a policy with itself, at most 3 differ at the 95 % level,
// and no guardrail trips.
func TestAAExperiments(t *testing.T) {
	for _, unit := range []experiment.Unit{experiment.ByRequest, experiment.BySession} {
		outside := 0
		for seed := range uint64(20) {
			e := mustExperiment(t, experiment.Options{
				Unit: unit, Seed: seed, Guardrails: experiment.DefaultGuardrails(),
				Arms: []experiment.Arm{{Name: "a", Share: 0.5, Policy: policy(t, "llmd-weighted")}, {Name: "b", Share: 0.5, Policy: policy(t, "llmd-weighted")}},
			})
			src := &Slice{}
			at := time.Duration(0)
			for i := range 600 {
				h := seedOf(seed, "job", i)
				at += time.Duration(-math.Log(float64(h>>11)/(1<<53)+1e-12) * 25 * float64(time.Millisecond))
				src.Jobs = append(src.Jobs, Job{At: at, Session: fmt.Sprint("s", h%200), PromptTokens: 100 + int(h%3000), OutputTokens: 10 + int(h>>20%100), SLO: request.SLO{TTFT: time.Second}})
			}
			sums := map[string]map[string][]float64{"a": {}, "b": {}} // TTFT by arm and unit
			recs, _ := records(t, Config{Nodes: h100s(t, 4), Policy: e, Seed: seed}, src)
			for i := range recs {
				u := recs[i].Session
				if unit == experiment.ByRequest {
					u = fmt.Sprint(i)
				}
				sums[recs[i].Arm][u] = append(sums[recs[i].Arm][u], recs[i].TTFT.Seconds())
			}
			var means [2][]float64
			for i, arm := range []string{"a", "b"} {
				for _, x := range sums[arm] {
					means[i] = append(means[i], stat.Mean(x))
				}
			}
			se := math.Sqrt(stat.Variance(means[0])/float64(len(means[0])) + stat.Variance(means[1])/float64(len(means[1])))
			if math.Abs(stat.Mean(means[0])-stat.Mean(means[1])) > 1.96*se {
				outside++
			}
			s := e.Status()
			if s.Trip != nil || s.Arms[0].Ended+s.Arms[1].Ended != 600 || s.Arms[0].Met < 200 {
				t.Errorf("by %s, seed %d: %+v", unit, seed, s)
			}
		}
		if outside > 3 {
			t.Errorf("by %s: %d of 20 A/A experiments are outside their 95 %% interval", unit, outside)
		}
		t.Logf("by %s: %d of 20 outside", unit, outside)
	}
}

// TestExperimentEndsABadPolicy: an arm that sends everything to one engine is ended by its guardrails,
// and everybody is better off.
func TestExperimentEndsABadPolicy(t *testing.T) {
	var trips []experiment.Trip
	e := mustExperiment(t, experiment.Options{
		Arms:       []experiment.Arm{{Name: "least-request", Share: 0.5, Policy: policy(t, "least-request")}, {Name: "one", Share: 0.5, Policy: lump{}}},
		Guardrails: experiment.DefaultGuardrails(), Tripped: func(t experiment.Trip) { trips = append(trips, t) },
	})
	src := steady(8000, 15*time.Millisecond)
	for i := range src.Jobs {
		src.Jobs[i].SLO.TTFT = 300 * time.Millisecond
		src.Jobs[i].PromptTokens = 3000
	}
	recs, _ := records(t, Config{Nodes: h100s(t, 4), Policy: e}, src)
	if len(trips) != 1 || trips[0].Arm != "one" {
		t.Fatalf("%v", trips)
	}
	t.Logf("after %v: %s", trips[0].At.Sub(epoch()), trips[0])
	for _, r := range recs[7500:] {
		if r.Arm != "least-request" || r.Cause != fleet.Complete {
			t.Fatalf("%+v", r)
		}
	}
}

// TestOutliersInExperiments: probes belong to no arm.
func TestOutliersInExperiments(t *testing.T) {
	arms := []experiment.Arm{{Name: "a", Share: 0.5, Policy: policy(t, "least-request")}, {Name: "b", Share: 0.5, Policy: policy(t, "round-robin")}}
	e := mustExperiment(t, experiment.Options{Arms: arms})
	cfg := Config{Nodes: h100s(t, 4), Policy: e, Outliers: &outlier.Detector{}, Events: []Event{{At: 5 * time.Second, Nodes: []int{0}, Kind: Fail, Factor: 1}}}
	recs, _ := records(t, cfg, steady(3000, 20*time.Millisecond))
	probes := 0
	for _, r := range recs {
		if probe := r.Policy == "probe"; probe != (r.Arm == "") {
			t.Fatalf("%+v", r)
		} else if probe {
			probes++
		}
	}
	if probes < 2 || probes > 5 {
		t.Errorf("%d probes", probes)
	}
}

func mustExperiment(t *testing.T, o experiment.Options) *experiment.Experiment {
	t.Helper()
	e, err := experiment.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// lump sends everything to the first engine.
type lump struct{}

func (lump) Name() string { return "lump" }

func (lump) Route(_ *router.Query, d *router.Decision) error {
	d.Index, d.Propensity = 0, 1
	return nil
}
