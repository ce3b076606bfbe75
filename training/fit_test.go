package training

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/training/trace"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}

var t0 = time.Now().Add(-time.Hour).Truncate(time.Second).UTC() // the trace believes times near the clock

// world makes requests with the times that an engine would take, so many times slower than another.
func world(seed uint64, n int, slower float64) []features.Observation {
	rng := rand.New(rand.NewPCG(seed, 9))
	class := unique.Make(fleet.Class{Model: "llama-3.1-8b", GPU: "H100", Engine: "vllm", TP: 1})
	out := make([]features.Observation, n)
	for i := range out {
		o := &out[i]
		*o = features.Observation{
			ID: "d-1", At: t0.Add(time.Duration(i) * 200 * time.Millisecond), Model: "llama-3.1-8b", Stream: true, Schema: features.Schema(),
			Endpoint: "h100-1", Picked: "h100-1", Policy: "predictive", Propensity: 1, Status: 200, Cause: fleet.Complete,
			Where: features.Where{Class: class, Slot: 5, Instance: 9}, OutputTokens: 50 + rng.IntN(300), CachedTokens: features.Unknown, Said: features.Nothing(),
		}
		streams := rng.IntN(20)
		o.X[features.Prompt] = float32(100 + rng.IntN(4000))
		o.X[features.Uncached] = o.X[features.Prompt] * rng.Float32()
		o.X[features.Streams] = float32(streams)
		o.X[features.Context] = float32(streams * 900)
		o.PromptTokens = int(o.X[features.Prompt])
		for _, f := range []features.Field{features.MaxTokens, features.KVUsage, features.RecentTTFT, features.StepTime} {
			o.X[f] = float32(math.NaN())
		}
		noise := slower * math.Exp(.1*rng.NormFloat64())
		o.TTFT = time.Duration((.02 + 30e-6*float64(o.X[features.Uncached]) + .001*float64(streams)) * noise * 1e9)
		o.ITL = time.Duration((.008 + .0002*float64(streams)) * noise * 1e9)
		o.E2E = o.TTFT + time.Duration(o.OutputTokens-1)*o.ITL
	}
	return out
}

// bare learners have no trees, which take most of the time.
var bare = predictor.Options{Without: predictor.Without{Trees: true}}

// logged writes requests to a trace log.
func logged(t testing.TB, rows []features.Observation) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trace")
	l, err := trace.Open(dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		l.Observe(&rows[i])
		if i%4000 == 0 {
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := l.Stats().Dropped(); n > 0 {
		t.Fatalf("%d rows are not in the log", n)
	}
	return dir
}

func fit(t testing.TB, o Options, paths ...string) (*Result, error) {
	t.Helper()
	records, err := OpenRecords(paths...)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	o.Predictor.Prior = seed.Prior
	return Fit(context.Background(), records, o)
}

func TestFitsAndJudges(t *testing.T) {
	rows := world(1, 1200, 1)
	dir := logged(t, rows)
	first, err := fit(t, Options{Predictor: predictor.Options{RefitAfter: 3 * time.Minute}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"ttft", "itl"} {
		s, prior := first.Metrics[target], first.Baselines["prior"][target]
		if s.N != 300 || s.MAPE > .15 || math.Abs(s.Bias) > .05 || s.Coverage90 < .8 || !(s.Pinball < prior.Pinball) {
			t.Errorf("%s: %+v; prior %+v", target, s, prior)
		}
	}
	if !first.Gate.Pass || first.Rows != 1200 || first.Holdout != 300 || !first.Since.Equal(rows[0].At) || !first.Split.Equal(rows[900].At) || !first.Until.Equal(rows[1199].At) {
		t.Errorf("%+v", first)
	}
	if first.Learned["ttft"] != 1200 || first.Learned["itl"] != 1200 || len(first.Dropped) > 0 {
		t.Errorf("learned %v, dropped %v", first.Learned, first.Dropped)
	}

	// A champion is not judged on what it has learned. One as good is not replaced, one of slower
	// days is.
	same, err := fit(t, Options{Predictor: bare, Champion: &first.State, ChampionName: "v1", ChampionUntil: first.Until}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if same.Gate.Pass || same.Gate.Champion != "v1" || same.Data != first.Data || !strings.Contains(same.Gate.Why, "has learned from the judged records") {
		t.Errorf("%+v", same.Gate)
	}
	early, err := fit(t, Options{Predictor: bare}, logged(t, rows[:1000]))
	if err != nil {
		t.Fatal(err)
	}
	late, err := fit(t, Options{Predictor: bare, Champion: &early.State, ChampionName: "v1", ChampionUntil: early.Until}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := late.Baselines["champion"]["ttft"].N; late.Gate.Pass || n != 200 || math.Abs(late.Gate.Gain) > .02 {
		t.Errorf("%d judged, %+v", n, late.Gate)
	}
	slow, err := fit(t, Options{Predictor: bare}, logged(t, world(2, 600, 3)))
	if err != nil {
		t.Fatal(err)
	}
	better, err := fit(t, Options{Predictor: bare, Champion: &slow.State, ChampionName: "v2"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if !better.Gate.Pass || better.Gate.Gain < .1 || !(better.Gate.CI95[0] > 0) || slow.Data == first.Data {
		t.Errorf("%+v", better.Gate)
	}
	if !(better.Baselines["champion"]["ttft"].Pinball > better.Metrics["ttft"].Pinball) {
		t.Errorf("%+v", better.Baselines)
	}
}

// TestExportsFitTheSame: a log and its exports make the same model.
func TestExportsFitTheSame(t *testing.T) {
	rows := world(3, 600, 1)
	want, err := fit(t, Options{Predictor: bare}, logged(t, rows))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, names := range [][]string{{"a.parquet"}, {"a.jsonl"}, {"1.jsonl", "2.parquet"}} {
		var paths []string
		for i, name := range names {
			path := filepath.Join(dir, name)
			w, err := observations.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			for k := i * len(rows) / len(names); k < (i+1)*len(rows)/len(names); k++ {
				if err := w.Write(&rows[k]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Commit(); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		got, err := fit(t, Options{Predictor: bare}, paths...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Metrics, got.Metrics); diff != "" || got.Data != want.Data {
			t.Errorf("%v: %s", names, diff)
		}
		if len(paths) == 2 {
			if _, err := fit(t, Options{Predictor: bare}, paths[1], paths[0]); err == nil || !strings.Contains(err.Error(), "must be in order of time") {
				t.Errorf("files in the wrong order: %v", err)
			}
		}
	}
}

func TestLimitsOfTime(t *testing.T) {
	rows := world(4, 800, 1)
	records, err := OpenRecords(logged(t, rows))
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	records.Since, records.Until = rows[100].At, rows[500].At
	r, err := Fit(context.Background(), records, Options{Predictor: bare})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows != 400 || !r.Since.Equal(rows[100].At) || !r.Until.Equal(rows[499].At) {
		t.Errorf("%d rows from %v to %v", r.Rows, r.Since, r.Until)
	}
}

func TestFitRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "holds no trace",
		text:                       "notes.txt",
	} {
		if _, err := fit(t, Options{Predictor: bare}, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := fit(t, Options{Predictor: bare}, logged(t, world(1, 50, 1))); err == nil || !strings.Contains(err.Error(), "50 of 200 records needed") {
		t.Errorf("few rows: %v", err)
	}
	log := logged(t, world(1, 1500, 1))
	held, err := trace.Open(log, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRecords(log); !errors.Is(err, trace.ErrLocked) {
		t.Errorf("log in use: %v", err)
	}
	held.Close()
	records, err := OpenRecords(log)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, records, Options{Predictor: bare}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestMeasurementsFit: published measurements with times of arrival can be learned from too.
func TestMeasurementsFit(t *testing.T) {
	root := os.Getenv("PRESAGE_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(root, "vllm-cpu", "*homog*.csv*"))
	if len(files) == 0 {
		t.Skipf("no measurements in %s: set PRESAGE_DATA", root)
	}
	r, err := fit(t, Options{Predictor: bare}, files[0])
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Metrics["ttft"]; s.N < 100 || !(s.MedAPE > 0 && s.MedAPE < .6) {
		t.Errorf("%+v", s)
	}
}

func TestGateDecides(t *testing.T) {
	for _, c := range []struct {
		g    Gate
		pass bool
		why  string
	}{
		{Gate{Gain: .05, CI95: [2]float64{.01, .09}, Targets: map[string]float64{"ttft": .08, "itl": .02}}, true, "better by 5.0 %"},
		{Gate{Gain: .01, CI95: [2]float64{.005, .02}}, false, "less than the 2 %"},
		{Gate{Gain: .05, CI95: [2]float64{-.01, .09}}, false, "may be chance"},
		{Gate{Gain: .05, CI95: [2]float64{.01, .09}, Targets: map[string]float64{"ttft": .2, "itl": -.1}}, false, "itl is worse by 10.0 %"},
		{Gate{Gain: math.NaN(), CI95: [2]float64{.01, .09}}, false, "less than"},
	} {
		g := c.g
		g.decide()
		if g.Pass != c.pass || !strings.Contains(g.Why, c.why) {
			t.Errorf("%+v", g)
		}
	}
}
