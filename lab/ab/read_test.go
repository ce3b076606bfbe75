package ab

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
)

// export writes records as a log.
func export(t testing.TB, path string, records []features.Observation) string {
	t.Helper()
	w, err := observations.Create(path)
	must(t, err)
	defer w.Abort()
	for i := range records {
		must(t, w.Write(&records[i]))
	}
	must(t, w.Commit())
	return path
}

func (w *traffic) records(seed uint64) (out []features.Observation) {
	w.observe(seed, func(o *features.Observation) { out = append(out, *o) })
	return out
}

// TestLogsOfReplicas: the same requests give the same result in one log, in several, in Parquet and in
// any order.
func TestLogsOfReplicas(t *testing.T) {
	w := usual()
	w.requests, w.effect = 60, 0.1
	all := w.records(8)
	dir := t.TempDir()
	whole, err := Read(t.Context(), []string{export(t, filepath.Join(dir, "all.jsonl"), all)}, Options{}, nil)
	must(t, err)
	rng := rand.New(rand.NewPCG(3, 3))
	var parts [2][]features.Observation
	for _, o := range all {
		i := rng.IntN(2)
		parts[i] = append(parts[i], o)
	}
	rng.Shuffle(len(parts[1]), func(i, j int) { parts[1][i], parts[1][j] = parts[1][j], parts[1][i] })
	both, err := Read(t.Context(), []string{export(t, filepath.Join(dir, "1.parquet"), parts[0]), export(t, filepath.Join(dir, "2.jsonl"), parts[1])}, Options{}, nil)
	must(t, err)
	if whole.Paired[0].N != 24 || whole.Verdicts[0].Sentence == "" {
		t.Fatalf("%+v", whole)
	}
	// The sums are the same to rounding; what is counted is the same.
	if diff := cmp.Diff(whole.Verdicts, both.Verdicts); diff != "" {
		t.Error(diff)
	}
	if a, b := whole.Paired[0], both.Paired[0]; a.Diff-b.Diff > 1e-9 || b.Diff-a.Diff > 1e-9 || a.N != b.N || whole.Washed != both.Washed {
		t.Errorf("%+v and %+v", a, b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, []string{filepath.Join(dir, "all.jsonl")}, Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestUnusableLogsAreNamed: each tells the file, the row or the column, and what is wrong.
func TestUnusableLogsAreNamed(t *testing.T) {
	dir := t.TempDir()
	w := usual()
	w.requests, w.blocks = 30, 8
	good := w.records(1)
	change := func(f func(i int, o *features.Observation)) []features.Observation {
		out := append([]features.Observation(nil), good...)
		for i := range out {
			f(i, &out[i])
		}
		return out
	}
	for name, c := range map[string]struct {
		records []features.Observation
		opts    Options
		want    string
	}{
		"one-armed":    {change(func(_ int, o *features.Observation) { o.Arm = "a" }), Options{}, "arm: a alone, in all 240 records with an arm: nothing to compare it with"},
		"armless":      {change(func(_ int, o *features.Observation) { o.Arm = "" }), Options{}, "arm: none of the 240 records carries one"},
		"many arms":    {change(func(i int, o *features.Observation) { o.Arm = strings.Repeat("x", i%9+1) }), Options{}, "row 8: arm: \"xxxxxxxx\" is the 8th; at most 7"},
		"no control":   {good, Options{Control: "bb"}, `control: "bb" is no arm of the log; nearest b; arms: a, b`},
		"unknown unit": {good, Options{Unit: "blok"}, `unit: "blok" unknown; nearest block`},
		"short blocks": {good, Options{Block: time.Millisecond}, "block: 1ms: less than 1s"},
		"tiny blocks":  {good, Options{Block: time.Second, Washout: new(time.Duration)}, ""},
		"all washout":  {good, Options{Washout: func() *time.Duration { d := 5 * time.Minute; return &d }()}, "washout: 5m: nothing is left of blocks of 5m"},
		"hours apart":  {change(func(i int, o *features.Observation) { o.At = t0.Add(time.Duration(i) * 400 * time.Hour) }), Options{Unit: "block", Block: time.Minute}, "at most 8192 are read"},
	} {
		path := export(t, filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".jsonl"), c.records)
		_, err := Read(t.Context(), []string{path}, c.opts, nil)
		if c.want == "" {
			must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	path := export(t, filepath.Join(dir, "good.jsonl"), good)
	twin := export(t, filepath.Join(dir, "twin.jsonl"), good)
	if _, err := Read(t.Context(), []string{path, twin}, Options{}, nil); err == nil || !strings.Contains(err.Error(), "twin.jsonl: row") || !strings.Contains(err.Error(), "good.jsonl too") {
		t.Errorf("a log given twice: %v", err)
	}
	for text, want := range map[string]string{
		"":                                       "no export of finished requests",
		`{"propensity":1,"picked":"e","arn":""}`: `row 1: json`,
		`{"propensity":1,"picked":"e","at":"2026-03-01T00:00:00Z","api":"chat","cause":"complete","ttft_ms":-1}`: "row 1: ttft_ms",
	} {
		bad := filepath.Join(dir, "bad.jsonl")
		must(t, os.WriteFile(bad, []byte(text+"\n"), 0o600))
		if _, err := Read(t.Context(), []string{bad}, Options{}, nil); err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(t.Context(), []string{filepath.Join(dir, "none.jsonl")}, Options{}, nil); err == nil || !strings.Contains(err.Error(), "none.jsonl: cannot be read") {
		t.Errorf("no file: %v", err)
	}
}

// TestFewBlocksAreToldHonestly: a log of an afternoon is read, but gives no verdict.
func TestFewBlocksAreToldHonestly(t *testing.T) {
	for blocks, want := range map[int]string{8: "4 of 12 block pairs needed", 2: "0 of 12"} {
		w := usual()
		w.blocks, w.effect = blocks, 0.15
		r := w.result(t, 2, Options{Block: 5 * time.Minute})
		if v := r.Verdicts[0]; !strings.Contains(v.Sentence, want) && blocks > 2 || v.Kind != "not enough evidence" {
			t.Errorf("%d blocks: %s", blocks, v.Sentence)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
}

// FuzzRead: no log breaks the analysis, whatever its lines say.
func FuzzRead(f *testing.F) {
	w := usual()
	w.requests, w.blocks = 2, 3
	dir := f.TempDir()
	whole, err := os.ReadFile(export(f, filepath.Join(dir, "seed.jsonl"), w.records(1)))
	must(f, err)
	explored := w.records(2)
	for i := range explored {
		explored[i].Choice = features.Choice{Among: 2, Rank: i % 2}
		explored[i].Session = uint64(i / 3)
	}
	more, err := os.ReadFile(export(f, filepath.Join(dir, "more.jsonl"), explored))
	must(f, err)
	f.Add(whole)
	f.Add(more)
	f.Add([]byte(`{"propensity":1,"picked":"e","at":"2026-03-01T00:00:00Z","arm":"a","api":"chat","cause":"complete"}`))
	f.Fuzz(func(t *testing.T, log []byte) {
		path := filepath.Join(t.TempDir(), "log.jsonl")
		must(t, os.WriteFile(path, log, 0o600))
		r, err := Read(t.Context(), []string{path}, Options{}, nil)
		if err != nil {
			if !strings.Contains(err.Error(), ": ") {
				t.Errorf("no place: %v", err)
			}
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
