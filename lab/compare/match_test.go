package compare

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/predictive"
)

// tiny is a scenario of seconds, with two SLO classes and conversations.
const tiny = `
name: tiny
about: two small engines for a few seconds
expects: spreading wins
duration: 6s
warmup: 1s
loads: [0.5, 1]
fleet: [{count: 3, gpu: L40S, model: llama-3.1-8b, tp: 1}]
slo: {ttft: 400ms, itl: 60ms}
traffic:
  - class: chat
    arrivals: [{poisson: {rate: 12}}]
    prefix: [{groups: 4, tokens: 600}]
    prompt: {lognormal: {mean: 300, sigma: 0.8, max: 4000}}
    output: {lognormal: {mean: 60, sigma: 0.5, max: 400}}
  - class: talk
    arrivals: [{poisson: {rate: 2}}]
    prompt: 200
    output: 40
    session: {turns: 3, think: 0.5, next: 60}
`

func arenaOf(t *testing.T, text string) *Arena {
	t.Helper()
	s, err := workload.Parse("tiny.yaml", []byte(text))
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
	return &Arena{Scenario: s, Table: table, Policies: registry, Learner: predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}}}
}

func tinyMatch(t *testing.T) *Match {
	t.Helper()
	return &Match{
		Arena: arenaOf(t, tiny), Policies: []string{"predictive", "weighted", "round-robin"}, Loads: []float64{.5, 1, 2}, Seeds: []uint64{1, 2, 3, 4, 5},
		Knees: true, Control: "always-busiest", Workers: 2,
	}
}

// TestEqualSeedsGiveTheSameTable, byte for byte, in whatever order the runs end.
func TestEqualSeedsGiveTheSameTable(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 4} {
		m := tinyMatch(t)
		m.Workers, m.Seeds = workers, m.Seeds[:2]
		o, err := m.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	if texts[0] != texts[1] {
		t.Errorf("twice the same seeds:\n%s\n%s", texts[0], texts[1])
	}
}

func TestMatch(t *testing.T) {
	m := tinyMatch(t)
	var last [2]int
	m.Progress = func(done, planned int) { last = [2]int{done, planned} }
	o, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.Seeds != 5 || o.Partial || o.Load != 1 || len(o.Sweep) != 3 || o.Reference != "weighted" || o.Void != "" {
		t.Errorf("seeds %d, partial %v, load %g, %d loads, reference %s, void %q", o.Seeds, o.Partial, o.Load, len(o.Sweep), o.Reference, o.Void)
	}
	if last[0] != last[1] || last[0] != o.Done {
		t.Errorf("progress ends at %v of %d runs", last, o.Done)
	}
	if !o.Control.Lost || o.Control.Load != 2 {
		t.Errorf("control: %+v", o.Control)
	}
	for _, p := range o.Order {
		st, k := o.Policies[p], o.Knees[p]
		if st.Mean["ttft_p90_ms"] <= 0 || st.Mean["slo_attainment"] <= 0 || st.Classes["talk"].Requests == 0 {
			t.Errorf("%s: %+v", p, st)
		}
		if _, ok := st.CI95["ttft_p99_ms"]; ok {
			t.Errorf("%s: an interval of p99 from 5 seeds", p)
		}
		if k.Load <= .1 || k.Zero > 0 || k.Unreached > 0 || k.Coarse || k.Rate <= 0 {
			t.Errorf("%s: knee %+v", p, k)
		}
	}
	if w := o.Policies["weighted"].Mean["changed_ratio"]; w != 0 {
		t.Errorf("the reference differs from itself: %v", w)
	}
	if r := o.Policies["round-robin"].Mean["changed_ratio"]; r < .3 || r > 1 {
		t.Errorf("round-robin changes %v of the decisions", r)
	}
	if len(o.Primary) != 2 || o.Primary[0].Metric != KneeMetric || o.Primary[0].Seeds != 5 {
		t.Errorf("primary: %+v", o.Primary)
	}
	for i := range o.Paired {
		if c := &o.Paired[i]; c.Holm < c.P || c.Seeds > 1 && (c.CIAll[0] > c.CI95[0] || c.CIAll[1] < c.CI95[1]) {
			t.Errorf("looked at together: %+v", c)
		}
	}
}

// TestPicksAreForgotten once they have been compared, whichever run ends first.
func TestPicksAreForgotten(t *testing.T) {
	runs := &Runs{Arena: arenaOf(t, tiny), Reference: "weighted"}
	for _, policy := range []string{"round-robin", "weighted", "random"} {
		if _, err := runs.Play(t.Context(), policy, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	for policy, kept := range map[string]bool{"round-robin": false, "weighted": true, "random": false} {
		r := runs.Result(policy, 1, 1)
		if (r.picks != nil) != kept || (r.Changed > 0) == kept {
			t.Errorf("%s: %d picks kept, %v changed", policy, len(r.picks), r.Changed)
		}
	}
	runs.forget(2)
	if runs.Result("weighted", 1, 1).picks == nil {
		t.Error("another seed's picks are forgotten")
	}
	runs.forget(1)
	if runs.Result("weighted", 1, 1).picks != nil {
		t.Error("picks are kept")
	}
}

// TestJSONHasTheShapeThatOthersRead.
func TestJSONHasTheShapeThatOthersRead(t *testing.T) {
	m := tinyMatch(t)
	m.Seeds, m.Loads = m.Seeds[:2], []float64{2}
	o, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenario string
		Load     float64
		Seeds    int
		Policies map[string]struct {
			Goodput    float64 `json:"goodput_rps"`
			Attainment float64 `json:"slo_attainment"`
			TTFT       float64 `json:"ttft_p99_ms"`
			Hit        float64 `json:"hit_ratio"`
			CV         float64 `json:"load_cv"`
			Knee       float64
			CI95       map[string][2]float64 `json:"ci95"`
		}
		Paired []struct {
			A, B, Metric string
			Diff         float64
			CI95         [2]float64 `json:"ci95"`
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	p := got.Policies["predictive"]
	if got.Scenario != "tiny" || got.Load != 2 || got.Seeds != 2 || p.Goodput <= 0 || p.Attainment <= 0 || p.TTFT <= 0 || p.Hit <= 0 || p.Knee <= 0 {
		t.Errorf("%+v", got)
	}
	for name, v := range map[string]float64{"slo_attainment": p.Attainment, "knee": p.Knee} {
		if ci, ok := p.CI95[name]; !ok || !(ci[0] <= v && v <= ci[1]) {
			t.Errorf("%s %v outside %v", name, v, ci)
		}
	}
	if !slices.ContainsFunc(got.Paired, func(c struct {
		A, B, Metric string
		Diff         float64
		CI95         [2]float64 `json:"ci95"`
	}) bool {
		return c.A == "predictive" && c.B == "round-robin" && c.Metric == "goodput_rps"
	}) {
		t.Errorf("paired: %+v", got.Paired)
	}
	if !slices.Contains(o.Notes, "no verdict: 2 of 5 seeds") || o.Primary[0].Verdict != TooFew {
		t.Errorf("notes %q, verdict %s", o.Notes, o.Primary[0].Verdict)
	}
}

// TestInterruptedMatchKeepsWholeSeeds.
func TestInterruptedMatchKeepsWholeSeeds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	m := tinyMatch(t)
	m.Knees, m.Workers = false, 1
	m.Progress = func(done, _ int) {
		if done == 25 { // a seed is ten runs
			stop()
		}
	}
	o, err := m.Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if o.Seeds != 2 || !o.Partial || !slices.Equal(o.SeedList, []uint64{1, 2}) || o.Done != 25 || o.Planned != 50 {
		t.Errorf("%d seeds %v, %d of %d runs", o.Seeds, o.SeedList, o.Done, o.Planned)
	}
	if !strings.HasPrefix(o.Notes[0], "stopped: 25 of 50 runs done") {
		t.Errorf("notes %q", o.Notes)
	}
	stopped, err := tinyMatch(t).Run(ctx)
	if !errors.Is(err, context.Canceled) || stopped.Seeds != 0 || stopped.Done != 0 {
		t.Errorf("%v, %+v", err, stopped)
	}
	if _, err := json.Marshal(stopped); err != nil {
		t.Error(err)
	}
}

// TestControlThatDoesNotLose voids the outcome: so little load that any endpoint carries all of it.
func TestControlThatDoesNotLose(t *testing.T) {
	m := tinyMatch(t)
	m.Knees, m.Loads = false, []float64{.02}
	o, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.Control.Lost || o.Void == "" || o.Primary[0].Verdict != VoidResult {
		t.Errorf("control %+v, void %q, verdict %s", o.Control, o.Void, o.Primary[0].Verdict)
	}
	Adjust([]*Outcome{o})
	if o.Primary[0].Verdict != VoidResult {
		t.Errorf("looking at it with others makes it %s", o.Primary[0].Verdict)
	}
}

// TestOtherAnswersAreMarked: percentiles of runs that answered other requests.
func TestOtherAnswersAreMarked(t *testing.T) {
	m := tinyMatch(t)
	m.Arena = arenaOf(t, strings.Replace(tiny, "  - class: chat\n", "  - class: chat\n    timeout: 2s\n", 1))
	m.Policies, m.Loads, m.Knees = []string{"round-robin", "always-busiest"}, []float64{2}, false
	o, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !o.Policies["always-busiest"].Unequal || o.Policies["round-robin"].Unequal {
		t.Errorf("answered: %v and %v", o.Policies["round-robin"].Values["answered_ratio"], o.Policies["always-busiest"].Values["answered_ratio"])
	}
	if !slices.ContainsFunc(o.Notes, func(n string) bool { return strings.Contains(n, "other numbers of requests were answered") }) {
		t.Errorf("notes %q", o.Notes)
	}
}

func TestUnknownMeasure(t *testing.T) {
	if _, err := MeasureOf("ttft_p90"); err == nil || !strings.Contains(err.Error(), "did you mean ttft_p90_ms?") {
		t.Errorf("%v", err)
	}
	for _, m := range Measures() {
		if got, err := MeasureOf(m.Name); err != nil || got.Title != m.Title || m.About == "" {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

// TestEmptyLoad: a load at which nothing arrives is an error, not a table of nothing.
func TestEmptyLoad(t *testing.T) {
	m := tinyMatch(t)
	m.Knees, m.Loads = false, []float64{.0001}
	if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no request arrives after the warm-up") {
		t.Errorf("%v", err)
	}
}
