package foresight

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/predictive"
)

func h100(t *testing.T) *engine.Engine {
	t.Helper()
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	coefs, err := table.Find("H100", "llama-3.1-8b", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Coefs: *coefs})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestForesightComesTrue: without later arrivals a busy engine does to the nanosecond what its clone
// did, and foresight changes nothing.
func TestForesightComesTrue(t *testing.T) {
	e := h100(t)
	at := time.Duration(0)
	for i := range 20 {
		at += 50 * time.Millisecond
		e.Advance(at)
		if _, err := e.Submit(at, &engine.Request{ID: uint64(i), PromptTokens: 500 + 300*i, OutputTokens: 50 + 20*i}); err != nil {
			t.Fatal(err)
		}
	}
	job := cluster.Job{PromptTokens: 3000, OutputTokens: 100}
	said, ok := Foresee(e, at, &job)
	if again, _ := Foresee(e, at, &job); !ok || again != said {
		t.Fatalf("foreseen %+v (%v), then %+v", said, ok, again)
	}
	if _, err := e.Submit(at, &engine.Request{ID: 99, PromptTokens: 3000, OutputTokens: 100}); err != nil {
		t.Fatal(err)
	}
	var first, end time.Duration
	for due, ok := e.Next(); ok; due, ok = e.Next() {
		for _, ev := range e.Advance(due) {
			switch {
			case ev.ID == 99 && ev.Kind == engine.FirstToken:
				first = ev.At
			case ev.ID == 99 && ev.Kind == engine.Finished:
				end = ev.At
			}
		}
	}
	if want := (Future{TTFT: (first - at).Seconds(), ITL: (end - first).Seconds() / 99}); said != want {
		t.Errorf("foreseen %+v, happened %+v", said, want)
	}
}

func TestNothingIsForeseenOfWhatAnEngineRefuses(t *testing.T) {
	e := h100(t)
	if f, ok := Foresee(e, 0, &cluster.Job{PromptTokens: 1 << 25, OutputTokens: 1}); ok {
		t.Errorf("foreseen %+v of a prompt that does not fit", f)
	}
	e.Kill(0)
	if f, ok := Foresee(e, 0, &cluster.Job{PromptTokens: 10, OutputTokens: 1}); ok {
		t.Errorf("foreseen %+v of a dead engine", f)
	}
}

// moments are n equal decisions over endpoints of classes a, a and b, of which the last is dead if
// dead; by is the factor of each one's forecast on the truth, common included.
func moments(n int, by [3]float64, dead bool) []moment {
	out := make([]moment, n)
	for k := range out {
		m := moment{classes: []string{"a", "a", "b"}, forecast: [][]foretold{make([]foretold, 3)}}
		for i, y := range []float64{0.1, 0.2, 0.4} {
			m.futures = append(m.futures, Future{TTFT: y, ITL: y / 10})
			m.forecast[0][i] = foretold{First: y * by[i]}
		}
		if dead {
			m.futures[2] = Future{}
		}
		out[k] = m
	}
	return out
}

func ttft(cases []moment) Figures {
	return figures(look(cases, 0, floorTTFT, func(f *foretold, y *Future) (float64, float64) { return f.First, y.TTFT }))
}

func TestFiguresOfDifferences(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, not %v", what, got, want)
		}
	}
	f := ttft(moments(400, [3]float64{2, 2, 2}, false))
	near("common error within", f.Within.Sigma, 0)
	near("common error across", f.Across.Sigma, 0)
	near("effect of a common error", f.Effect.Max, 0)
	near("its size", f.Error, math.Ln2)

	f = ttft(moments(400, [3]float64{2, 1, 1}, false))
	near("within", f.Within.Sigma, math.Ln2)
	near("robust", f.Within.Robust, 1.4826*math.Ln2)
	near("across", f.Across.Sigma, math.Ln2/math.Sqrt2) // one pair of two is right
	near("effect", f.Effect.Max, math.Ln2/2)
	if f.Within.Pairs != 400 || f.Across.Pairs != 800 || f.Effect.Windows != 4 {
		t.Errorf("%d pairs within, %d across, %d windows", f.Within.Pairs, f.Across.Pairs, f.Effect.Windows)
	}
	if f = ttft(moments(10, [3]float64{1, 1, 1}, true)); f.Across.Pairs != 0 || f.Within.Pairs != 10 {
		t.Errorf("pairs with a dead engine: %+v", f)
	}
}

func TestRegretOfTheLeastForecast(t *testing.T) {
	right := choose(moments(5, [3]float64{1, 1, 1}, false), 0)
	if right.Top1 != 1 || right.RegretMS != 0 || math.Abs(right.RandomMS-400./3) > 1e-6 {
		t.Errorf("right forecasts: %+v", right)
	}
	wrong := choose(moments(5, [3]float64{1, 0.1, 1}, false), 0)
	if wrong.Top1 != 0 || math.Abs(wrong.RegretMS-100) > 1e-6 || math.Abs(wrong.Regret-1) > 1e-6 {
		t.Errorf("one forecast too low: %+v", wrong)
	}
}

func TestRecoveryIsAgainstTheOldError(t *testing.T) {
	var whole, poor []label
	for k := range 2500 {
		l := label{at: time.Duration(k) * time.Second, class: "a", error: 0.1}
		switch {
		case k >= 1000 && k < 1100:
			l.error = -0.4
		case k >= 1100 && k < 1300:
			l.error = 0.15
		}
		whole = append(whole, l)
		l.error *= 2
		poor = append(poor, l)
	}
	got := recoveries(whole, whole, 1000*time.Second)["a"]
	for what, d := range map[string]float64{
		"old": got.Old - 0.1, "first": got.First - 4, "300": got.At300 - 1.5, "1000": got.At1k - 1, "worst": got.Worst - 1,
	} {
		if math.Abs(d) > 1e-9 {
			t.Errorf("%s: off by %v in %+v", what, d, got)
		}
	}
	if w := recoveries(poor, whole, 1000*time.Second)["a"].Worst; math.Abs(w-2) > 1e-9 {
		t.Errorf("twice the error of the whole learner counts as %v", w)
	}
}

func TestChooseKnowsItsParts(t *testing.T) {
	got, err := Choose([]string{"drift", "ledger"})
	if err != nil || len(got) != 3 || got[0].Name != Whole {
		t.Errorf("%v, %v", got, err)
	}
	if _, err = Choose([]string{"luck"}); err == nil {
		t.Error("a part that is not there is accepted")
	}
}

func TestScenariosParse(t *testing.T) {
	for _, name := range []string{"upgrade", "experts"} {
		s, err := Scenario(name)
		if err != nil || s.Endpoints() < 6 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Scenario("nonesuch"); err == nil {
		t.Error("a scenario that is not there is accepted")
	}
}

// short is a study of three minutes of a scenario, with the change at two thirds.
func short(t *testing.T, name string, parts ...string) *Study {
	t.Helper()
	s, err := Scenario(name)
	if err != nil {
		t.Fatal(err)
	}
	s.Duration, s.Warmup = 180*time.Second, 45*time.Second
	for i := range s.Events {
		s.Events[i].At = 120 * time.Second
	}
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	variants, err := Choose(parts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range variants {
		variants[i].Without.Trees = true
	}
	return &Study{
		Scenario: s, Table: table, Variants: slices.Clone(variants), Every: 10, Spoiled: 0.05,
		Policy: func(seed uint64) (router.Policy, error) {
			return predictive.Recipes().New("predictive", router.Params{Seed: seed})
		},
	}
}

// TestDifferencesBetweenEndpoints is the gate on what routing turns on: three kinds of hardware, bursts,
// an upgrade, clients that leave, spoiled labels; and engines whose step times do not have the form of
// the learner's law. Docs: docs/prediction.md, "Against the exact engine".
func TestDifferencesBetweenEndpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("plays three minutes of eight engines twice")
	}
	for name, limit := range gates {
		t.Run(name, func(t *testing.T) {
			r, err := short(t, name, "offsets").Run(1)
			if err != nil {
				t.Fatal(err)
			}
			v := r.Variants[Whole]
			for _, c := range []struct {
				what       string
				got, limit float64
			}{
				{"TTFT within a class", v.TTFT.Within.Robust, limit.within},
				{"TTFT across classes", v.TTFT.Across.Robust, limit.across},
				{"TTFT of one endpoint", v.TTFT.Effect.Max, limit.effect},
				{"ITL within a class", v.ITL.Within.Sigma, limit.itlWithin},
				{"ITL across classes, later requests included", v.LivedITL.Across.Sigma, limit.itlAcross},
				{"regret of the least TTFT", v.Choice.Regret, limit.regret},
			} {
				if !(c.got <= c.limit) {
					t.Errorf("%s: %.3f, above %.3f", c.what, c.got, c.limit)
				}
			}
			if r.Foreseen < window || v.TTFT.Effect.Windows == 0 || v.Labels[predictor.TTFT].N < 1000 {
				t.Errorf("%d decisions foreseen, %d windows, %d labels", r.Foreseen, v.TTFT.Effect.Windows, v.Labels[predictor.TTFT].N)
			}
		})
	}
}

type gate struct{ within, across, effect, itlWithin, itlAcross, regret float64 }

var gates = map[string]gate{
	"upgrade": {0.15, 0.20, 0.05, 0.10, 0.22, 0.07},
	"experts": {0.16, 0.20, 0.05, 0.13, 0.15, 0.07},
}

func TestEqualSeedsGiveEqualResults(t *testing.T) {
	run := func() *Result {
		s := short(t, "upgrade", "cancels", "ledger")
		s.Scenario.Duration, s.Scenario.Warmup, s.Scenario.Events, s.Every = 20*time.Second, 5*time.Second, nil, 50
		r, err := s.Run(3)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b := run(), run()
	for name, v := range a.Variants {
		if w := b.Variants[name]; v.TTFT != w.TTFT || v.Choice != w.Choice || v.Labels != w.Labels {
			t.Errorf("%s: %+v, then %+v", name, v, w)
		}
	}
	if a.Cancelled == 0 || a.Variants["ledger"].TTFT == a.Variants[Whole].TTFT {
		t.Errorf("%d cancelled; the ledger makes no difference", a.Cancelled)
	}
}
