package report

import (
	"math"
	"strings"
	"testing"
)

// duel is ours against one other policy, sustained rates found.
func duel(d Difference) *Comparison {
	knee := Knee{Searched: true, Reached: true, Gap: .03}
	return &Comparison{
		Scope: Scope{Scenario: "herd", Seeds: d.N, Requests: 100}, Ours: "a", Primary: SustainedRate,
		Policies: []Policy{{Name: "a", Knee: knee}, {Name: "b", Knee: knee}},
		Versus:   []Versus{{Other: "b", Primary: d}},
		Control:  &Control{Policy: "always-busiest", Against: "a", Load: 1.2, Behind: Interval{60, 55, 65}},
		Method:   Method{TTFTOff: SimulatorTTFT, ITLOff: SimulatorITL, RunHours: .225},
	}
}

// live is the same of live traffic, with nothing wrong.
func live(d Difference) *Comparison {
	c := duel(d)
	c.Primary, c.Control = Attainment, nil
	c.Live = &Live{
		Unit: "block", Pairs: d.N, AlwaysValid: true, AA: &AA{P: .5, N: 20, Wide: 1}, CarryOver: &CarryOver{P: .6},
		Arrivals: []Arrival{{"a", 1000, 10}, {"b", 1000, 10.4}}, DesignEffect: 2,
	}
	return c
}

func judged(t *testing.T, c *Comparison, kind Kind, sentence string) Verdict {
	t.Helper()
	v := Judge(c)
	if v.Kind != kind || strings.ReplaceAll(v.Sentence, thin, " ") != sentence {
		t.Errorf("%s: %q, want %s: %q", v.Kind, v.Sentence, kind, sentence)
	}
	return v
}

func interval(mean, half, base float64, n int) Difference {
	return Difference{Interval: Interval{Value(mean), Value(mean - half), Value(mean + half)}, Base: Value(base), SD: Value(half), N: n, P: Unknown()}
}

func has(t *testing.T, texts []string, part string) {
	t.Helper()
	if !strings.Contains(strings.ReplaceAll(strings.Join(texts, "\n"), thin, " "), part) {
		t.Errorf("%q is not in %q", part, texts)
	}
}

func hasNot(t *testing.T, texts []string, part string) {
	t.Helper()
	if strings.Contains(strings.ReplaceAll(strings.Join(texts, "\n"), thin, " "), part) {
		t.Errorf("%q is in %q", part, texts)
	}
}

func TestVerdicts(t *testing.T) {
	judged(t, duel(interval(5.4, 1.3, 38.9, 20)), Switch, "Switch to a: it carries 14 % more traffic within SLO than b (CI 11 to 17 %).")
	judged(t, duel(interval(-1.2, .8, 40, 20)), Keep, "Keep b: a is 3 % worse (CI \u22125 to \u22121 %).")
	judged(t, duel(interval(5, 1, 0, 20)), Switch, "Switch to a: it carries 5.0 req/s more traffic within SLO than b (CI 4.0 to 6.0 req/s).")
	d := interval(5.4, 1.3, 38.9, 20) // its ratios, estimated apart, settle nothing: shares of the base are shown
	d.Relative = &Interval{.2, -1, 1}
	judged(t, duel(d), Switch, "Switch to a: it carries 14 % more traffic within SLO than b (CI 11 to 17 %).")
}

func TestNoWinner(t *testing.T) {
	d := difference(.9, 2.6, 43.4, 20, 1)
	v := judged(t, duel(d), NotEnough, "Not enough evidence: between \u22120.3 and +2.1 req/s. About 36 more seeds (or 8.1 h) would settle 1 req/s.")
	has(t, v.More, "ahead in")
	page := string(written(t, duel(d)))
	if !strings.Contains(page, "<h1>◇ Not enough") || !strings.Contains(page, "mean undecided") {
		t.Error("neither the sign nor the hollow dot is there")
	}
	// Twice the seeds that it asks for settle what it promised.
	if size, more := settle(&d, false); size != 1 || more != 36 {
		t.Errorf("%d more settle %v", more, size)
	}
	d = interval(5, 1, 40, 20)
	d.P = .08
	judged(t, duel(d), NotEnough, "Not enough evidence: between +4.0 and +6.0 req/s, undone by Holm's correction. About 14 more seeds (or 3.1 h) would settle 0.5 req/s.")
}

func TestNoTinyWinner(t *testing.T) {
	judged(t, duel(interval(.2, .1, 40, 20)), Same, "Same for practical purposes (within ±1 %). Choose the simpler: b.")
	judged(t, duel(interval(-.2, .1, 40, 20)), Same, "Same for practical purposes (within ±1 %). Choose the simpler: b.")
	wide := interval(.2, .1, 40, 20)
	wide.All = &Interval{.2, -.1, .5}
	if v := Judge(duel(wide)); v.Kind == Same {
		t.Error("an interval for all comparisons that reaches beyond 1 % is the same")
	}
	if v := Judge(duel(interval(.5, .1, 40, 20))); v.Kind != Switch {
		t.Errorf("an interval that reaches beyond 1 %% is %s", v.Kind)
	}
}

func TestOnePrimary(t *testing.T) {
	c := duel(interval(-4, 1, 40, 20)) // the others are all good, and change nothing
	for m, d := range map[Metric]Difference{TTFT90: interval(-.5, .1, 1, 20), ITLMean: interval(-.01, .001, .02, 20), Goodput: interval(9, 1, 40, 20)} {
		c.Versus[0].Others = append(c.Versus[0].Others, Effect{m, d})
	}
	if v := Judge(c); v.Kind != Keep {
		t.Errorf("another metric heads the verdict: %s", v.Sentence)
	}
	harmful := map[Metric]Difference{
		TTFT99: interval(.3, .1, 2, 20), ITLMean: interval(.002, .001, .02, 20), Errors: interval(.01, .002, .01, 20), Fairness: interval(-.1, .02, .9, 20),
	}
	for m, d := range harmful {
		c := duel(interval(4, 1, 40, 20))
		c.Versus[0].Others = []Effect{{m, d}}
		v := Judge(c)
		if v.Kind != Switch || len(v.More) < 2 || !strings.Contains(v.More[1], "a costs "+m.of().name) {
			t.Errorf("%s: the second sentence of %q does not name it", m, v.More)
		}
		d.Mean /= 100
		c.Versus[0].Others = []Effect{{m, d}}
		hasNot(t, Judge(c).More, "costs")
	}
	c = duel(interval(4, 1, 40, 20))
	c.Versus[0].Others = []Effect{{TTFT90, interval(1, .1, 1, 20)}}
	hasNot(t, Judge(c).More, "costs") // it is not guarded
}

func TestSimulatorLimit(t *testing.T) {
	has(t, Judge(duel(interval(2, .5, 40, 20))).More, "may not carry over to hardware: the simulator itself is off by 6.2 %")
	hasNot(t, Judge(duel(interval(4, .5, 40, 20))).More, "hardware")
	for _, e := range []struct {
		metric Metric
		by     float64
		doubt  bool
	}{{TTFT90, .05, true}, {TTFT90, .07, false}, {ITLMean, .03, true}, {ITLMean, .04, false}, {Errors, .01, false}} {
		c := duel(interval(4, .5, 40, 20))
		c.Versus[0].Others = []Effect{{e.metric, interval(-e.by, .001, 1, 20)}}
		var p page
		p.differences(c)
		if got := p.Effects[0].Figures[0].Doubt != ""; got != e.doubt {
			t.Errorf("%s by %v: doubt %v", e.metric, e.by, got)
		}
	}
	hasNot(t, Judge(live(interval(2, .5, 90, 20))).More, "hardware")
}

func TestKneeNotReached(t *testing.T) {
	for p := range 2 {
		c := duel(interval(5, 1, 40, 20))
		c.Policies[p].Knee.Reached = false
		v := judged(t, c, NotEnough, "Not enough evidence: sustained rate not reached: raise the swept rates.")
		has(t, refusals(c, &v), "Refused: the sustained rate of "+c.Policies[p].Name)
	}
	c := duel(interval(5, 1, 40, 20))
	c.Policies[0].Knee.Searched = false
	judged(t, c, NotEnough, "Not enough evidence: no rates were swept, so no sustained rate is known.")
}

func TestKneeCoarse(t *testing.T) {
	c := duel(interval(5, 1, 40, 20))
	c.Policies[0].Knee.Gap = .12
	v := Judge(c)
	has(t, refusals(c, &v), "Coarse: the rates around the sustained rate of a are 12 % of it apart")
	c.Policies[0].Knee.Gap = .09
	hasNot(t, refusals(c, &v), "Coarse")
}

func TestSeeds(t *testing.T) {
	judged(t, duel(interval(5, 1, 40, 4)), NotEnough, "Not enough evidence: 4 of 5 seeds needed.")
	for _, n := range []int{9, 10} {
		c := duel(interval(5, 1, 40, n))
		c.Versus[0].Others = []Effect{{TTFT99, interval(.5, .1, 2, n)}}
		v := Judge(c)
		if v.Kind != Switch {
			t.Errorf("%d seeds: %s", n, v.Sentence)
		}
		if n < 10 {
			has(t, v.More, "a costs TTFT p99 +500 ms (25 % worse).")
			has(t, refusals(c, &v), "Refused: an interval of TTFT p99. Slow requests come in bursts; 9 of 10 seeds needed.")
		} else {
			has(t, v.More, "a costs TTFT p99 +500 ms [+400, +600] (25 % worse).")
			hasNot(t, refusals(c, &v), "p99")
		}
	}
}

func TestLiveBlocks(t *testing.T) {
	d := interval(5, 1, 90, 40)
	if v := Judge(live(d)); v.Kind != Switch {
		t.Errorf("with nothing wrong: %s", v.Sentence)
	}
	for want, spoil := range map[string]func(*Live){
		"11 of 12 block pairs needed":                   func(l *Live) { l.Pairs = 11 },
		"arrivals differ by 12 % between arms":          func(l *Live) { l.Arrivals[1].Rate = 11.2 },
		"A/A rejects at 5 % (p = 0.030)":                func(l *Live) { l.AA.P = .03 },
		"blocks carry over into each other (p = 0.010)": func(l *Live) { l.CarryOver.P = .01 },
		"the log has gaps":                              func(l *Live) { l.Unsound = []string{"the log has gaps", "an arm changed"} },
	} {
		c := live(d)
		spoil(c.Live)
		judged(t, c, NotEnough, "Not enough evidence: "+want+".")
	}
}

func TestPeeking(t *testing.T) {
	c := live(interval(5, 1, 90, 40))
	if !strings.Contains(string(written(t, c)), "may be read at any time") {
		t.Error("the page does not say that it may be read at any time")
	}
	c.Live.AlwaysValid = false
	judged(t, c, NotEnough, "Not enough evidence: the intervals hold for one look only, at the planned end.")
	if strings.Contains(string(written(t, c)), "may be read at any time") {
		t.Error("the page says that it may be read at any time")
	}
}

func TestSharedQueues(t *testing.T) {
	for _, by := range []string{"request", "session"} {
		c := live(interval(5, 1, 90, 40))
		c.Live.Unit = by
		v := judged(t, c, NotEnough, "Not enough evidence: split by "+by+", the arms share queues.")
		has(t, v.More, "Within shared queues: ")
		if !strings.Contains(string(written(t, c)), "No claim for the fleet") {
			t.Error("the page makes a claim for the fleet")
		}
	}
}

func TestOffPolicy(t *testing.T) {
	for _, o := range []struct {
		ess, weight Value
		refused     bool
	}{{.3, 11, false}, {.04, 11, true}, {.3, 21, true}, {Unknown(), 11, true}, {.3, Unknown(), true}} {
		c := live(interval(5, 1, 90, 40))
		c.Live.OffPolicy = []OffPolicy{{Policy: "x", Method: "SNIPS", TTFT: Interval{.31, .29, .33}, ESS: o.ess, MaxWeight: o.weight, N: 1000}}
		v := Judge(c)
		if got := strings.Contains(strings.Join(refusals(c, &v), ""), "an estimate for x from logged decisions"); got != o.refused {
			t.Errorf("%+v: refused %v", o, got)
		}
		if got := len(newLive(c).OffPolicy) == 0; got != o.refused {
			t.Errorf("%+v: estimate left out %v", o, got)
		}
	}
}

func TestBaselineFairness(t *testing.T) {
	c := duel(interval(5, 1, 40, 20))
	c.Policies[1].Tuning = "llm-d v0.4 defaults"
	page := string(written(t, c))
	if !strings.Contains(page, "a<small>untuned</small>") || !strings.Contains(page, "b<small>llm-d v0.4 defaults</small>") {
		t.Error("the table does not say where weights come from")
	}
}

func TestAlwaysBusiestMustLose(t *testing.T) {
	c := duel(interval(5, 1, 40, 20))
	c.Control.Behind = Interval{1, -2, 4}
	v := judged(t, c, Void, "Void: the control arm did not lose; do not read further.")
	has(t, v.More, "always-busiest must lose to a, and does not")
	if page := string(written(t, c)); !strings.Contains(page, "✕</span> void") || strings.Contains(page, "a better") {
		t.Error("the table can be read in spite of it")
	}
	for by, kind := range map[Value]Kind{4: Void, 6: Switch} { // of one seed, without an interval
		c.Control.Behind = Point(float64(by))
		if v := Judge(c); v.Kind != kind {
			t.Errorf("%v points behind: %s", by, v.Kind)
		}
	}
	c.Control = nil
	v = Judge(c)
	has(t, refusals(c, &v), "No negative control was played")
}

func TestCapturedNeedsARange(t *testing.T) {
	c := duel(interval(5, 1, 40, 20))
	c.Captured = &Captured{Baseline: "round-robin", Reference: "best in hindsight", Possible: 4.9, Bars: []Bar{{"a", Point(.9), false}}}
	var p page
	p.captured(c)
	if p.Captured != nil {
		t.Error("shares of a small range are shown")
	}
	has(t, []string{p.CapturedNote}, "Between round-robin and best in hindsight lie 4.9 points; shares are shown from 5 points on.")
	c.Captured.Possible = 5
	if p.captured(c); p.Captured == nil {
		t.Error("shares of 5 points are not shown")
	}
}

func TestForecastsAreJudged(t *testing.T) {
	curve := func(random bool, at90 Value, n int) Calibration {
		return Calibration{"TTFT", random, []Value{.5, .9}, []Value{.5, at90}, n}
	}
	for want, r := range map[string]Reliability{
		"The foretold p90 holds, within what so many requests scatter.":                              {Curves: []Calibration{curve(true, .88, 100), curve(false, .91, 100)}},
		"The foretold p90 is too low on endpoints drawn at random and too high on chosen endpoints.": {Curves: []Calibration{curve(true, .79, 800), curve(false, .96, 800)}},
		"": {},
	} {
		if got := calibrated(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	flattered := Reliability{Curves: []Calibration{curve(true, .9, 800), curve(false, .8, 800)}}
	has(t, []string{flattery(&flattered)}, "too good: by 10 points")
	flattered.Curves[1].N = 8 // by chance
	has(t, []string{flattery(&flattered)}, "no such gap is shown")
}

func TestDependsOnTraffic(t *testing.T) {
	c := duel(interval(1, 2, 40, 20))
	c.Scenarios = []Slice{
		{Name: "prefix-heavy", Other: "b", Difference: interval(5, 1, 40, 8)}, {Name: "reasoning", Other: "b", Difference: interval(-5, 1, 40, 8)},
		{Name: "mixed", Other: "b", Difference: interval(1, 2, 40, 8)},
	}
	judged(t, c, Depends, "Depends on traffic: a wins on prefix-heavy, b on reasoning. Mixed: no difference.")
	c.Scenarios[1].Difference = interval(-5, 1, 40, 4) // too few seeds
	if v := Judge(c); v.Kind == Depends {
		t.Error(v.Sentence)
	}
}

// TestNumbers: one digit more than the noise, thin spaces, a true minus.
func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"\u22120.3": number(-.3, 1), "0.0": number(-.01, 1), "7,150": number(7150, 0), "\u22121,234,567.9": number(-1234567.89, 1), dash: number(Value(math.NaN()), 1),
		"+5.4 [+4.0, +6.8]": Interval{5.4, 4.04, 6.76}.bracket(), "+14 [+10, +17]": Interval{13.9, 10.4, 17.4}.bracket(), "+3": unit(signed(3, 0), ""), "3\u202f%": percent(.03, 0),
		"1.9\u202fM": count(1_900_000), "a, b and c": list([]string{"a", "b", "c"}), "0.85": factor(.85), "1": factor(1), "10": factor(10),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
