package ab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/report"
)

// TestVerdicts: what an experiment of 24 pairs may say, and what forbids it to say anything.
func TestVerdicts(t *testing.T) {
	second := func(d time.Duration) *time.Duration { return &d }
	for name, c := range map[string]struct {
		change func(*traffic)
		opts   Options
		kind   report.Kind
		want   string // in the sentence
	}{
		"better":            {func(w *traffic) { w.effect = 0.12 }, Options{}, report.Switch, "Switch to a: it carries"},
		"worse":             {func(w *traffic) { w.effect = -0.12 }, Options{}, report.Keep, "Keep b: a is"},
		"other way round":   {func(w *traffic) { w.effect = -0.12 }, Options{Control: "a"}, report.Switch, "Switch to b"},
		"nothing":           {func(*traffic) {}, Options{}, report.NotEnough, "would settle"},
		"practically same":  {func(w *traffic) { w.sway, w.inSLO = 0.0005, 0.999 }, Options{}, report.Same, "Same for practical purposes"},
		"few blocks":        {func(w *traffic) { w.effect, w.blocks = 0.3, 22 }, Options{}, report.NotEnough, "11 of 12 block pairs needed"},
		"carry-over":        {func(w *traffic) { w.effect, w.carry = 0.15, 0.3 }, Options{}, report.NotEnough, "carry over"},
		"uneven arrivals":   {func(w *traffic) { w.effect, w.surge = 0.12, 0.2 }, Options{}, report.NotEnough, "arrivals differ by"},
		"session":           {func(w *traffic) { w.effect, w.split = 0.2, "session" }, Options{}, report.NotEnough, "share queues"},
		"request":           {func(w *traffic) { w.effect, w.split = 0.2, "request" }, Options{}, report.NotEnough, "share queues"},
		"no SLO":            {func(w *traffic) { w.noSLO = true }, Options{}, report.NotEnough, "24 of 24 pairs have fewer than 10 requests with an SLO"},
		"all in washout":    {func(w *traffic) { w.length, w.washout = time.Minute, 5*time.Second }, Options{}, report.NotEnough, "blocks of 1m are too short"},
		"washout by choice": {func(w *traffic) { w.length, w.washout, w.effect = time.Minute, 5*time.Second, 0.12 }, Options{Washout: second(5 * time.Second)}, report.Switch, "Switch to a"},
	} {
		w := usual()
		c.change(&w)
		r := w.result(t, 4, c.opts)
		v := r.Verdicts[0]
		if v.Kind != c.kind || !strings.Contains(v.Sentence, c.want) {
			t.Errorf("%s: %s: %s, want %s with %q\n%+v", name, v.Kind, v.Sentence, c.kind, c.want, r.Checks)
		}
	}
}

// TestUnitIsTold: what was assigned, and how long blocks are, is read from the log; washouts help.
func TestUnitIsTold(t *testing.T) {
	for _, length := range []time.Duration{20 * time.Second, 90 * time.Second, 5 * time.Minute, 8 * time.Minute} {
		for _, washed := range []time.Duration{0, length / 4} {
			for _, n := range []int{24, 300} {
				w := usual()
				w.blocks, w.length, w.washout, w.requests = 30, length, washed, n
				if r := w.result(t, 9, Options{}); r.Unit != "block" || r.Block != length.Seconds() {
					t.Errorf("blocks of %s with %d requests, washed out %s: read as %s of %v s", length, n, washed, r.Unit, r.Block)
				}
			}
		}
	}
	for _, split := range []string{"session", "request"} {
		w := usual()
		w.split = split
		if r := w.result(t, 9, Options{}); r.Unit != split {
			t.Errorf("a split by %s was read as one by %s", split, r.Unit)
		}
	}
}

// TestAA: a log in which neighbouring blocks of one policy differ gives no verdict.
func TestAA(t *testing.T) {
	w := usual()
	w.policyB = "predictive" // an A/A experiment: both arms are decided by one policy
	w.effect = 0.12
	r := w.result(t, 3, Options{})
	if c := r.check("A/A"); c.OK || !strings.Contains(c.Reason, "of one policy") || r.Verdicts[0].Kind != report.NotEnough || !strings.Contains(r.Verdicts[0].Sentence, "A/A rejects") {
		t.Errorf("%+v, %+v", c, r.Verdicts[0])
	}
	w.effect = 0
	if c := w.result(t, 3, Options{}).check("A/A"); !c.OK || !c.Known {
		t.Errorf("%+v", c)
	}
}

// TestGuardrailsEndIsTold: after a trip the control decides all, and the log says since when.
func TestGuardrailsEndIsTold(t *testing.T) {
	w := usual()
	w.effect = -0.1
	end := t0.Add(4 * time.Hour)
	each := func(add func(*features.Observation)) {
		w.observe(1, add)
		for i := range 4000 {
			add(record(end.Add(time.Duration(i)*2*time.Second), "b", fmt.Sprint("x", i)))
		}
	}
	var s Survey
	each(func(o *features.Observation) { must(t, s.Add(0, o)) })
	p, err := s.Plan(Options{Control: "b"})
	must(t, err)
	l := p.Ledger()
	each(l.Add)
	r := l.Result()
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "a ends at 2026-03-01 04:00 UTC, 2h10m before the log does") {
		t.Errorf("%s", notes)
	}
	if r.primary(t).N != 24 {
		t.Errorf("%d pairs", r.primary(t).N)
	}
}

// TestThreeArms: each is held against the control, and all intervals hold together.
func TestThreeArms(t *testing.T) {
	w := usual()
	w.blocks, w.third, w.effect = 96, true, 0.1
	r := w.result(t, 5, Options{Control: "c"})
	if len(r.Verdicts) != 2 || r.Verdicts[0].Arm != "a" || r.Verdicts[0].Kind != report.Switch || r.Verdicts[1].Arm != "b" || r.Verdicts[1].Kind == report.Switch {
		t.Fatalf("%+v", r.Verdicts)
	}
	var seq stat.Sequence
	for _, d := range r.Paired[0].diffs {
		seq.Add(d)
	}
	if in := seq.Interval(0.975); float64(r.Paired[0].CI[0]) != in.Low || r.Paired[0].N != 24 {
		t.Errorf("%+v, want %+v", r.Paired[0], in)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "2 arms are held against c: the intervals hold together, each at a level of 97.5 %") {
		t.Error(notes)
	}
}

// TestControlIsChosen: where it is not named.
func TestControlIsChosen(t *testing.T) {
	for want, arms := range map[string]map[string]string{
		"weighted":  {"weighted": "weighted", "predictive": "predictive"},
		"held-back": {"least-request": "least-request", "held-back": "weighted"},
		"b":         {"a": "weighted", "b": "least-request", "held-back": "least-request"},
		"a":         {"a": "weighted", "b": "least-request"},
	} {
		for _, unit := range units {
			var s Survey
			i := 0
			for arm, policy := range arms {
				i++
				o := record(t0.Add(time.Duration(i)*time.Minute), arm, fmt.Sprint(i))
				o.Policy = policy
				must(t, s.Add(0, o))
			}
			p, err := s.Plan(Options{Unit: unit, Block: 5 * time.Minute})
			must(t, err)
			got, want, n := p.Arms[p.control()].Name, want, len(arms)
			if want == "b" && unit != "block" {
				want, n = "a", 2 // blocks held back are no part of a split
			}
			if got != want || len(p.Arms) != n {
				t.Errorf("%v by %s: the control is %s of %d arms, want %s of %d", arms, unit, got, len(p.Arms), want, n)
			}
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
