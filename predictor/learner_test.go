package predictor

import (
	"math"
	"testing"
	"time"
	"unique"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// student is a learner in its world, with shorthands.
type student struct {
	*Learner
	w *world
}

func newStudent(t testing.TB, seed uint64, labels int) *student {
	s := &student{NewLearner(Options{}), newWorld(seed)}
	teach(t, s.w, labels, s.Learner)
	return s
}

// target is what was learned of one time of the world's class.
func (s *student) target(kind int) *target { return &s.classes[s.w.class].targets[kind] }

// forecast is what is foretold of a request now.
func (s *student) forecast(o *features.Observation) (f features.Forecast) {
	s.Freeze().Judge(&o.X, &o.Where, &f)
	return f
}

// see lets the learner see a request as a router would, after change.
func (s *student) see(o *features.Observation, change func(o *features.Observation)) (first, end Drop) {
	o.Said = s.Freeze().Judge(&o.X, &o.Where, &o.Fore)
	if change != nil {
		change(o)
	}
	if o.TTFT != 0 {
		first = s.First(o)
	}
	return first, s.End(o)
}

// A member that goes wrong loses its voice, and the blend does not follow it; when it is right again it
// is heard again.
func TestSpoiledMemberLosesItsVoice(t *testing.T) {
	s := newStudent(t, 1, 400)
	before := s.target(TTFT).weights()[memberSlow]
	if before < minVoice {
		t.Fatalf("the slow regression has no voice to lose: %v", s.target(TTFT).weights())
	}
	var sum float64
	for range 400 {
		o := s.w.next()
		s.see(o, func(o *features.Observation) { o.Said[TTFT][memberSlow] += float32(math.Log(3)) })
		sum += math.Abs(float64(o.Fore.TTFT.P50)/o.TTFT.Seconds() - 1)
	}
	if after := s.target(TTFT).weights()[memberSlow]; after >= minVoice {
		t.Errorf("its weight was %.3f and is %.3f though it is wrong by a factor of 3", before, after)
	}
	if sum/400 > 0.15 {
		t.Errorf("forecasts are off by %.3f", sum/400)
	}
	for range 3000 {
		s.see(s.w.next(), nil)
	}
	if healed := s.target(TTFT).weights()[memberSlow]; healed < minVoice {
		t.Errorf("right again, its weight is %.3f", healed)
	}
}

// Clients that leave before their first token tell only that it would have taken longer: with a fifth of
// them leaving, forecasts of the others stay as good as without them.
func TestCancelledRequestsAreNotExactLabels(t *testing.T) {
	run := func(cancelled bool) (mape, bias float64) {
		s := newStudent(t, 3, 600)
		var sum, logs, n float64
		for i := range 2500 {
			o := s.w.next()
			leaves := s.w.rng.Float64() < 0.2
			waited := time.Duration(float64(o.TTFT) * (0.3 + 0.7*s.w.rng.Float64()))
			switch {
			case leaves && cancelled:
				s.see(o, func(o *features.Observation) {
					o.Cause, o.E2E, o.TTFT, o.ITL, o.OutputTokens = fleet.ClientGone, waited, 0, 0, features.Unknown
				})
			case !leaves:
				s.see(o, nil)
				if i >= 500 {
					z := math.Log(float64(o.Fore.TTFT.P50) / o.TTFT.Seconds())
					sum, logs, n = sum+math.Abs(math.Expm1(z)), logs+z, n+1
				}
			}
		}
		return sum / n, logs / n
	}
	alone, aloneBias := run(false)
	with, bias := run(true)
	if math.Abs(with-alone) > 0.03*math.Max(alone, 0.1) || math.Abs(bias-aloneBias) > 0.03 {
		t.Errorf("error %.4f, bias %+.4f with cancelled requests; %.4f, %+.4f without", with, bias, alone, aloneBias)
	}
}

// Labels that teach nothing are counted by reason, and no forecast changes by them.
func TestBadLabelsAreCountedAndLeaveTheModel(t *testing.T) {
	s := newStudent(t, 4, 300)
	var probes []*features.Observation
	var want []features.Forecast
	for range 20 {
		o := s.w.next()
		probes, want = append(probes, o), append(want, s.forecast(o))
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name       string
		spoil      func(o *features.Observation)
		first, end Drop
	}{
		{"no vector", func(o *features.Observation) { o.Schema = "" }, NoVector, NoVector},
		{"another schema", func(o *features.Observation) { o.Schema = "v0-00000000" }, OtherModel, OtherModel},
		{"served elsewhere", func(o *features.Observation) { o.Endpoint = "b" }, Moved, Moved},
		{"failed", func(o *features.Observation) { o.Status = 503 }, Failed, Failed},
		{"an infinite feature", func(o *features.Observation) { o.X[features.Prompt] = inf }, NotFinite, NotFinite},
		{"a negative infinite feature", func(o *features.Observation) { o.X[features.StepTime] = -inf }, NotFinite, NotFinite},
	} {
		counts := s.Counts
		o := s.w.next()
		first, end := s.see(o, c.spoil)
		if first != c.first || end != c.end {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, first, end, c.first, c.end)
		}
		if got := s.Counts.Dropped[c.end] - counts.Dropped[c.end]; got != 2 || s.Counts.First != counts.First || s.Counts.Gap != counts.Gap {
			t.Errorf("%s: counted %d times", c.name, got)
		}
	}
	for _, y := range []time.Duration{-time.Second, math.MinInt64, math.MaxInt64, 25 * time.Hour} {
		o := s.w.next()
		o.TTFT = y
		if d := s.First(o); d != NotFinite {
			t.Errorf("TTFT %v: %v", y, d)
		}
	}
	o := s.w.next()
	if o.Stream = false; s.First(o) != Unstreamed {
		t.Error("an answer at once has a first token")
	}
	for i, o := range probes {
		if got := s.forecast(o); got != want[i] {
			t.Errorf("forecast %d was %+v and is %+v", i, want[i], got)
		}
	}
	for _, short := range []func(o *features.Observation){
		func(o *features.Observation) { o.OutputTokens = 1 },
		func(o *features.Observation) { o.ITL = 0 },
	} {
		o := s.w.next()
		short(o)
		labels := s.target(ITL).labels
		if d := s.End(o); d != TooShort || s.target(ITL).labels != labels {
			t.Errorf("an answer without a gap: %v", d)
		}
	}
}

// When the blend errs much more than the frozen prior, the prior forecasts alone, until that is over.
func TestFallbackToThePrior(t *testing.T) {
	s := newStudent(t, 5, 300)
	wrong := func(o *features.Observation) {
		o.Fore.TTFT.P50 = 4 * float32(o.TTFT.Seconds())
		o.Said[TTFT][memberPrior] = float32(math.Log(o.TTFT.Seconds()))
	}
	for range 300 {
		s.see(s.w.next(), wrong)
	}
	o := s.w.next()
	var f features.Forecast
	said := s.Freeze().Judge(&o.X, &o.Where, &f)
	prior := math.Exp(float64(said[TTFT][memberPrior]))
	if r := s.Report().Classes[0].Targets[TTFT]; !r.Fallback || math.Abs(float64(f.TTFT.P50)/prior-1) > 1e-4 {
		t.Errorf("fallback %t, foretold %v, the prior says %v", r.Fallback, f.TTFT.P50, prior)
	}
	if s.Report().Classes[0].Targets[ITL].Fallback {
		t.Error("the other time gave way too")
	}
	for range 1500 {
		s.see(s.w.next(), func(o *features.Observation) { o.Fore.TTFT.P50 = float32(o.TTFT.Seconds()) })
	}
	if s.Report().Classes[0].Targets[TTFT].Fallback {
		t.Error("the prior stays though the blend is right")
	}
}

// One endpoint of two becomes three times slower: within 60 requests half of it is known, the other keeps its
// forecast, and 300 requests after its recovery it is as good as ever.
func TestSlowEndpointIsLearnedAndForgotten(t *testing.T) {
	s := newStudent(t, 6, 600)
	at := time.Unix(1e9, 0)
	run := func(n int, slow float64) {
		for range n {
			for slot := range 2 {
				o := s.w.next()
				at = at.Add(100 * time.Millisecond)
				o.At, o.Where.Slot, o.Where.Instance = at, int32(slot), uint64(slot)+1
				if slot == 1 {
					o.TTFT = time.Duration(slow * float64(o.TTFT))
				}
				s.see(o, nil)
			}
		}
	}
	ratio := func() float64 {
		o := s.w.next()
		o.Where.Instance = 1
		healthy := s.forecast(o)
		o.Where.Slot, o.Where.Instance = 1, 2
		slow := s.forecast(o)
		return float64(slow.Price.First / healthy.Price.First)
	}
	run(100, 1)
	if r := ratio(); math.Abs(r-1) > 0.1 {
		t.Errorf("equal endpoints are priced %.2f apart", r)
	}
	run(60, 3)
	if r := ratio(); r < 1.5 {
		t.Errorf("three times slower for 60 requests: priced %.2f times as high", r)
	}
	run(300, 3)
	if r := ratio(); r < 2.2 {
		t.Errorf("three times slower for 360 requests: priced %.2f times as high", r)
	}
	run(300, 1)
	if r := ratio(); r > 1.25 {
		t.Errorf("recovered for 300 requests: priced %.2f times as high", r)
	}
}

// A new instance on a slot begins without the former's correction, and late words of the former do not
// touch it.
func TestSlotOfAnotherInstanceStartsFresh(t *testing.T) {
	s := newStudent(t, 7, 100)
	for range 200 {
		o := s.w.next()
		o.Where.Instance = 1
		o.TTFT *= 3
		s.see(o, nil)
	}
	at := features.Where{Class: s.w.class, Instance: 1}
	if corrected(s, &at).first < 1.3 {
		t.Fatal("nothing was learned of the first instance")
	}
	o := s.w.next()
	o.Where.Instance = 2
	if s.forecast(o); corrected(s, &o.Where) != unscaled {
		t.Error("an instance that was never seen is corrected")
	}
	s.see(o, nil)
	fresh := corrected(s, &o.Where)
	if math.Abs(fresh.first-1) > 0.2 {
		t.Errorf("the second instance begins with %+v", fresh)
	}
	late := s.w.next()
	late.Where.Instance, late.TTFT = 1, 20*late.TTFT
	for range 50 {
		s.see(late, nil)
	}
	if got := corrected(s, &o.Where); got != fresh {
		t.Errorf("late words of the first instance made it %+v", got)
	}
}

// corrected is the correction of an endpoint in what is published now.
func corrected(s *student, at *features.Where) scale {
	f := s.Freeze()
	sc, _ := f.endpoint(at, f.class(at.Class))
	return sc
}

// What did not change since the last Freeze is shared.
func TestFreezeSharesUnchangedClasses(t *testing.T) {
	s := newStudent(t, 8, 50)
	other := unique.Make(fleet.Class{Model: "qwen3-8b", GPU: "A100", Engine: "vllm", TP: 1})
	s.Meet(other)
	before := s.Freeze()
	if s.News() {
		t.Error("news right after a Freeze")
	}
	s.see(s.w.next(), nil)
	if !s.News() {
		t.Error("a label is no news")
	}
	after := s.Freeze()
	if after.Generation <= before.Generation || len(before.classes) != 2 || len(after.classes) != 2 {
		t.Fatalf("generations %d, %d; %d and %d classes", before.Generation, after.Generation, len(before.classes), len(after.classes))
	}
	if after.class(other) != before.class(other) {
		t.Error("the class that nothing was learned of was copied")
	}
	if after.class(s.w.class) == before.class(s.w.class) {
		t.Error("the class that learned is the old one")
	}
}

// Whatever the numbers, quantiles are positive, finite and in order, in batches as by themselves.
func TestQuantilesNeverCross(t *testing.T) {
	l, w := mature(t)
	f := l.Freeze()
	rapid.Check(t, func(t *rapid.T) {
		var b Batch
		b.Size(rapid.IntRange(1, 5).Draw(t, "rows"))
		number := rapid.OneOf(rapid.Just(float32(0)), rapid.Float32Range(1e-3, 100), rapid.Float32Range(1, 1e6), rapid.Float32Range(1, 1e9), rapid.Just(float32(math.NaN())))
		for i := range b.X {
			for k := range b.X[i] {
				b.X[i][k] = number.Draw(t, features.Field(k).String())
			}
			b.At[i].Class = w.class
			if rapid.Bool().Draw(t, "unknown class") {
				b.At[i].Class = fleet.ClassID{}
			}
		}
		f.Predict(&b)
		for i := range b.X {
			var alone features.Forecast
			f.Judge(&b.X[i], &b.At[i], &alone)
			for _, p := range []features.Prediction{b.Fore[i].TTFT, b.Fore[i].ITL, alone.TTFT, alone.ITL} {
				if !(p.P50 > 0 && p.P50 <= p.P90 && p.P90 <= p.P99 && !math.IsInf(float64(p.P99), 0)) {
					t.Fatalf("row %v: %+v", b.X[i], p)
				}
			}
		}
	})
}

// Clocks that jump, back or far ahead, and counters that begin anew teach no nonsense.
func TestClockJumps(t *testing.T) {
	s := newStudent(t, 9, 300)
	o := s.w.next()
	o.Where.Instance = 1
	want := s.forecast(o)
	t0 := time.Unix(1e9, 0)
	endpoint := &fleet.Endpoint{Name: "a"}
	state := fleet.State{Endpoint: endpoint, Slot: 0, Instance: 1, Class: s.w.class, Load: new(fleet.Load)}
	watch := func(at time.Time, streamed time.Duration, gaps int64) {
		state.Streaming, state.Context, state.Streamed, state.Gaps = 4, 4000, streamed, gaps
		s.Watch(&fleet.Snapshot{At: at, States: []fleet.State{state}})
	}
	watch(t0, time.Minute, 1000)
	watch(t0.Add(-time.Hour), time.Minute, 1010)                 // back
	watch(t0.Add(1000*time.Hour), time.Minute, 1020)             // far ahead
	watch(t0.Add(1000*time.Hour+time.Second), 0, 0)              // counters of a new router
	watch(t0.Add(1000*time.Hour+time.Second), time.Minute, 1000) // no time at all
	watch(time.Time{}, 0, 0)
	watch(t0, math.MaxInt64, math.MaxInt64)
	watch(t0.Add(time.Second), math.MinInt64, math.MinInt64)
	for _, at := range []time.Time{{}, t0.Add(-time.Hour), t0.Add(1e6 * time.Hour), t0} {
		next := s.w.next()
		next.At, next.Where.Instance = at, 1
		s.see(next, nil)
	}
	got := s.forecast(o)
	for _, p := range [][2]float32{{got.TTFT.P50, want.TTFT.P50}, {got.ITL.P50, want.ITL.P50}, {got.Price.Decode, want.Price.Decode}} {
		if r := float64(p[0] / p[1]); !(r > 0.5 && r < 2) {
			t.Errorf("forecast %+v became %+v", want, got)
			break
		}
	}
}
