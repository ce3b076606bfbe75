package predictor

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor/gbdt"
)

// world makes requests with the times that a simple engine would take.
type world struct {
	rng   *rand.Rand
	class fleet.ClassID
}

func newWorld(seed uint64) *world {
	return &world{rand.New(rand.NewPCG(seed, 9)), unique.Make(fleet.Class{Model: "llama-3.1-8b", GPU: "H100", Engine: "vllm", TP: 1})}
}

func (w *world) next() *features.Observation {
	o := &features.Observation{
		At: time.Unix(1e9, 0), Stream: true, Schema: features.Schema(), Endpoint: "a", Picked: "a", Status: 200, Cause: fleet.Complete,
		Where: features.Where{Class: w.class}, OutputTokens: 50 + w.rng.IntN(300), CachedTokens: features.Unknown,
	}
	streams := w.rng.IntN(20)
	o.X[features.Prompt] = float32(100 + w.rng.IntN(4000))
	o.X[features.Uncached] = o.X[features.Prompt] * w.rng.Float32()
	o.X[features.Streams] = float32(streams)
	o.X[features.Context] = float32(streams * 900)
	o.X[features.MaxTokens] = float32(math.NaN())
	o.X[features.KVUsage] = float32(math.NaN())
	noise := math.Exp(.1 * w.rng.NormFloat64())
	o.TTFT = time.Duration((.02 + 30e-6*float64(o.X[features.Uncached]) + .001*float64(streams)) * noise * 1e9)
	o.ITL = time.Duration((.008 + .0002*float64(streams)) * noise * 1e9)
	return o
}

// teach lets learners see the same requests, each with its own forecasts.
func teach(t testing.TB, w *world, n int, learners ...*Learner) {
	t.Helper()
	for range n {
		o := w.next()
		for _, l := range learners {
			own := *o
			own.Said = l.Freeze().Judge(&own.X, &own.Where, &own.Fore)
			if d := l.First(&own); d != Learned {
				t.Fatal(d)
			}
			if d := l.End(&own); d != Learned {
				t.Fatal(d)
			}
			for fit := l.Due(own.At); fit != nil; fit = l.Due(own.At) {
				fit.Run()
				if err := l.Adopt(fit); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestB37SavedModelsGoOn: a model that was saved, written, read and restored says the same and goes
// on learning the same.
func TestB37SavedModelsGoOn(t *testing.T) {
	a := NewLearner(Options{})
	teach(t, newWorld(1), 700, a)
	s := a.Save()
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := DecodeState(data)
	if err != nil {
		t.Fatal(err)
	}
	b := NewLearner(Options{})
	if err := b.Restore(*read); err != nil {
		t.Fatal(err)
	}
	again := b.Save()
	second, err := again.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(second)); diff != "" {
		t.Error("a restored model is written differently")
	}
	w := newWorld(2)
	agree := func(rows int) {
		t.Helper()
		fa, fb := a.Freeze(), b.Freeze()
		for range rows {
			o := w.next()
			var x, y features.Forecast
			fa.Judge(&o.X, &o.Where, &x)
			fb.Judge(&o.X, &o.Where, &y)
			for i, p := range []float32{x.TTFT.P50, x.TTFT.P90, x.TTFT.P99, x.ITL.P50, x.ITL.P90, x.Price.Decode} {
				if q := []float32{y.TTFT.P50, y.TTFT.P90, y.TTFT.P99, y.ITL.P50, y.ITL.P90, y.Price.Decode}[i]; math.Abs(float64(p-q)) > 1e-6*float64(p) {
					t.Fatalf("forecast %d: %v, restored %v", i, p, q)
				}
			}
		}
	}
	agree(1000)
	teach(t, newWorld(3), 200, a, b)
	agree(200)
	t.Logf("%d bytes after 700 requests", len(data))
}

// TestRestoreRefuses: no state that a learner could not have saved is taken, and nothing changes.
func TestRestoreRefuses(t *testing.T) {
	l := NewLearner(Options{})
	teach(t, newWorld(1), 200, l)
	before := l.Save()
	want, _ := before.Encode()
	narrow := gbdt.NewTable(2)
	for range 40 {
		_ = narrow.Add([]float32{1, 2}, 1, 1)
	}
	small, err := gbdt.Train(narrow, gbdt.Params{Trees: 1, Depth: 1})
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for name, c := range map[string]struct {
		spoil func(*State)
		want  string
	}{
		"version":   {func(s *State) { s.Version = 2 }, "model version 2"},
		"schema":    {func(s *State) { s.Schema = "v0-x" }, `schema "v0-x"`},
		"twice":     {func(s *State) { s.Classes = append(s.Classes, s.Classes[0]) }, "twice"},
		"prior":     {func(s *State) { s.Classes[0].Prior.Theta[1] = nan }, "prior: coefficient 1"},
		"budget":    {func(s *State) { s.Classes[0].Prior.Budget = 0 }, "budget"},
		"theta":     {func(s *State) { s.Classes[0].Theta.Theta[2] = nan }, "theta: theta[2]"},
		"phi":       {func(s *State) { s.Classes[0].Phi.Cov = nil }, "phi: cov: 0 values"},
		"answer":    {func(s *State) { s.Classes[0].Answer = -1 }, "answer_tokens"},
		"trust":     {func(s *State) { s.Classes[0].Trust = [2]float64{2, 1} }, "trust"},
		"tp":        {func(s *State) { s.Classes[0].TP = -1 }, "tp: -1"},
		"slow":      {func(s *State) { s.Classes[0].Targets[0].Slow.Seen = -1 }, "targets[0]: slow: seen"},
		"losses":    {func(s *State) { s.Classes[0].Targets[1].Losses[3] = [2]float64{nan, 1} }, "targets[1]: losses[3]"},
		"bands":     {func(s *State) { s.Classes[0].Targets[1].Bands.All = []float64{9} }, "bands: all[0]"},
		"raise":     {func(s *State) { s.Classes[0].Targets[1].Bands.Raise[2][0] = 1 }, "raise[2]"},
		"rows":      {func(s *State) { s.Classes[0].Targets[0].Rows = make([]byte, rowBytes+1) }, "rows: 121 bytes"},
		"recent":    {func(s *State) { s.Classes[0].Targets[0].Recent[0] = 99 }, "recent[0]"},
		"cut":       {func(s *State) { s.Classes[0].Targets[0].Cut = 1e6 }, "1000000 cut"},
		"context":   {func(s *State) { s.Classes[0].Context = [2]float64{1, 0} }, "context: [1 0]"},
		"labels":    {func(s *State) { s.Classes[0].Targets[0].Labels = 3 }, "labels: 3"},
		"one model": {func(s *State) { s.Classes[0].Targets[0].Ratio = nil }, "one of two models"},
		"features":  {func(s *State) { s.Classes[0].Targets[0].Trees = small }, "2 features"},
		"high":      {func(s *State) { s.Classes[0].Targets[0].High[0] = float32(nan) }, "high[0]"},
	} {
		s := l.Save()
		c.spoil(&s)
		if err := l.Restore(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after := l.Save()
	if got, _ := after.Encode(); string(got) != string(want) {
		t.Error("a refused state changed the learner")
	}
}

func TestDecodeStateRefuses(t *testing.T) {
	l := NewLearner(Options{})
	l.Meet(newWorld(1).class)
	s := l.Save()
	good, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for data, want := range map[string]string{
		"":                    "empty",
		text[:len(text)*6/10]: "cannot parse",
		strings.Replace(text, `"version":1`, `"version":1,"more":2`, 1):    "more",
		strings.Replace(text, `"version":1`, `"version":1,"version":1`, 1): "duplicate",
		strings.Replace(text, `"version":1`, `"version":8,"more":2`, 1):    "model version 8, this program reads 1",
		strings.Replace(text, string(features.Schema()), "v0-beef", 1):     `schema "v0-beef"`,
		`"hello"`: "cannot parse",
	} {
		if _, err := DecodeState([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := DecodeState([]byte(strings.Replace(text, `"version":1`, `"version":8`, 1))); !errors.Is(err, ErrOther) {
		t.Errorf("not ErrOther: %v", err)
	}
}

// TestStateKnowsEveryField: what is added to what a learner knows must be saved with it, or be left out
// knowingly. Left out are schedules, marks, counts of endpoints, the evidence of alarms and of a law out of reach, and that a regression is hasty.
func TestStateKnowsEveryField(t *testing.T) {
	for typ, want := range map[reflect.Type]int{reflect.TypeFor[class](): 16, reflect.TypeFor[target](): 15, reflect.TypeFor[row](): 3, reflect.TypeFor[fading](): 2} {
		if typ.NumField() != want {
			t.Errorf("%s has %d fields, the state was written for %d: save it, or raise the number", typ.Name(), typ.NumField(), want)
		}
	}
}

func FuzzRestore(f *testing.F) {
	l := NewLearner(Options{})
	l.Meet(newWorld(1).class)
	s := l.Save()
	empty, _ := s.Encode()
	f.Add(empty)
	teach(f, newWorld(1), 40, l)
	s = l.Save()
	for t := range s.Classes[0].Targets {
		s.Classes[0].Targets[t].Rows = nil
	}
	some, _ := s.Encode()
	f.Add(some)
	w := newWorld(4)
	asked := []*features.Observation{w.next(), w.next(), w.next()}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeState(data)
		if err != nil {
			return
		}
		l := NewLearner(Options{})
		if l.Restore(*s) != nil {
			return
		}
		frozen := l.Freeze()
		for _, o := range asked {
			var fore features.Forecast
			frozen.Judge(&o.X, &o.Where, &fore)
			for _, p := range []float32{fore.TTFT.P50, fore.TTFT.P99, fore.ITL.P50, fore.ITL.P99, fore.ITL.Mean} {
				if !(p > 0) || math.IsInf(float64(p), 0) {
					t.Fatalf("a restored model says %+v", fore)
				}
			}
		}
		again := l.Save()
		if _, err := again.Encode(); err != nil {
			t.Fatal(err)
		}
		if err := l.Restore(again); err != nil {
			t.Fatal(err)
		}
	})
}
