package observations

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func sample(n int) *features.Observation {
	o := &features.Observation{
		ID: "d-8f3k2m", At: t0.Add(time.Duration(n) * 1001 * time.Microsecond), API: request.Chat, Model: "llama-3.1-8b", Adapter: "sql", Stream: true,
		SLO:      request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond},
		Priority: -3, Endpoint: "h100-1", Picked: "h100-1", Policy: "predictive", Arm: "a", Schema: features.Schema(),
		Where:      features.Where{Class: unique.Make(fleet.Class{Model: "llama-3.1-8b", GPU: "H100", Engine: "vllm", TP: 1}), Slot: 3, Instance: 17},
		Propensity: .95, HitBlocks: 4, HitTokens: 256, Blocks: 9, MaxTokens: 512, PromptTokens: n, ExactPrompt: true,
		Session: 1 << 63, Choice: features.Choice{Among: 3, Rank: 1, TTFT: [features.MostExplored]float32{.1, .15, 0}},
		CachedTokens: 128, OutputTokens: 77, ExactOutput: true, TTFT: 83*time.Millisecond + 7, ITL: 11 * time.Millisecond,
		E2E: 930 * time.Millisecond, Cause: fleet.Complete, Status: 200,
		Fore: features.Forecast{
			TTFT: features.Prediction{Mean: .1, P50: .09, P90: .2, P99: .4}, ITL: features.Prediction{Mean: .01, P50: .011, P90: .012, P99: .02},
			Price: features.Price{First: .1, KVWait: .2, Prefill: .3, Gap: .02, Decode: .4, Sigma: .05},
		},
	}
	for f := range o.X {
		o.X[f] = float32(f) / 3
	}
	o.X[features.MaxTokens] = float32(math.NaN())
	o.Said = features.Nothing()
	o.Said[0][2] = -2.5
	return o
}

// bare is a request of which little is known: answered whole, by an endpoint without a class.
func bare() *features.Observation {
	return &features.Observation{At: t0, Propensity: 1, CachedTokens: features.Unknown, OutputTokens: features.Unknown, PromptTokens: features.Unknown, Said: features.Nothing()}
}

// near compares records: times of day exactly, forecasts to a float32's last digits.
var near = []cmp.Option{
	cmp.Comparer(func(a, b float32) bool {
		return a != a && b != b || math.Abs(float64(a)-float64(b)) <= 1e-6*math.Abs(float64(a))
	}),
	cmp.Comparer(func(a, b fleet.ClassID) bool { return a == b }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
}

func write(t testing.TB, path string, rows ...*features.Observation) {
	t.Helper()
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, o := range rows {
		if err := w.Write(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func read(path string) (rows []features.Observation, rep *Report, err error) {
	rep, err = Scan(path, func(o *features.Observation) error {
		rows = append(rows, *o)
		return nil
	})
	return rows, rep, err
}

func TestFilesComeBackAsTheyWere(t *testing.T) {
	for _, name := range []string{"a.parquet", "a.jsonl", "A.JSONL"} {
		path := filepath.Join(t.TempDir(), name)
		var want []*features.Observation
		for n := range 300 {
			want = append(want, sample(n))
		}
		want = append(want, bare())
		write(t, path, want...)
		// The name is nothing, the content tells.
		other := filepath.Join(filepath.Dir(path), "data.bin")
		if err := os.Rename(path, other); err != nil {
			t.Fatal(err)
		}
		got, rep, err := read(other)
		if err != nil || rep.Kept != len(want) || len(rep.Dropped) > 0 {
			t.Fatalf("%s: %v, %+v", name, err, rep)
		}
		for i := range want {
			if diff := cmp.Diff(*want[i], got[i], near...); diff != "" {
				t.Fatalf("%s: row %d: %s", name, i, diff)
			}
		}
	}
}

func TestEmptyParquetIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.parquet")
	write(t, path)
	if rows, _, err := read(path); err != nil || len(rows) != 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestNothingAppearsBeforeCommit: a file that was given up, or not completed, leaves nothing behind.
func TestNothingAppearsBeforeCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	write(t, path, sample(1))
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(sample(2)); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if rows, _, err := read(path); err != nil || len(rows) != 1 || rows[0].PromptTokens != 1 {
		t.Errorf("%v, %v", rows, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "a.csv"):                "use .parquet or .jsonl",
		filepath.Join(dir, "none", "a.jsonl"):      "no such file or directory",
		filepath.Join(dir, "a.parquet", "b.jsonl"): "not a directory",
	} {
		if _, err := Create(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestB35RowsThatCannotBe: rows with impossible values are left out and counted, the others kept.
func TestB35RowsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	write(t, path, sample(1))
	good := strings.TrimSpace(string(must(os.ReadFile(path))))
	lines := []string{good}
	edits := map[string][2]string{
		"negative time":  {`"ttft_ms":83.000007`, `"ttft_ms":-5`},
		"time as text":   {`"ttft_ms":83.000007`, `"ttft_ms":"83"`},
		"huge time":      {`"e2e_ms":930`, `"e2e_ms":1e300`},
		"negative count": {`"prompt_tokens":1`, `"prompt_tokens":-1`},
		"cause":          {`"cause":"complete"`, `"cause":"done"`},
		"propensity":     {`"propensity":0.95`, `"propensity":2`},
		"unknown column": {`"propensity"`, `"propensities"`},
		"short vector":   {`"x":[0,`, `"x":[`},
		"other schema":   {string(features.Schema()), "v0-12345678"},
		"status":         {`"status":200`, `"status":20000`},
	}
	for name, e := range edits {
		line := strings.Replace(good, e[0], e[1], 1)
		if line == good {
			t.Fatalf("%s: nothing to spoil in %s", name, good)
		}
		lines = append(lines, line)
	}
	lines = append(lines, "not json at all", good, good[:60]) // cut at the end
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, rep, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"impossible value": 7, "other schema": 1, "not a row": 4}
	if diff := cmp.Diff(want, rep.Dropped); diff != "" || len(rows) != 2 || rep.Kept != 2 || rep.Rows != 14 {
		t.Errorf("%d rows, %+v: %s", len(rows), rep, diff)
	}
	if rep.First == nil || !strings.Contains(rep.First.Error(), "a.jsonl: row 2") {
		t.Errorf("first: %v", rep.First)
	}
}

func TestForeignAndDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.parquet")
	write(t, good, sample(1), sample(2))
	data := must(os.ReadFile(good))
	for name, file := range map[string][]byte{
		"empty":    {},
		"csv":      []byte("a,b\n1,2\n"),
		"json":     []byte(`{"model":"x"}`),
		"magic":    []byte("PAR1"),
		"cut":      data[:len(data)*6/10],
		"no end":   data[:len(data)-3],
		"zeros":    append([]byte("PAR1"), make([]byte, 5000)...),
		"no start": data[4:],
	} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		rows, _, err := read(path)
		if err == nil || len(rows) > 0 || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	if _, _, err := read(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	want := errors.New("enough")
	if _, err := Scan(good, func(*features.Observation) error { return want }); !errors.Is(err, want) {
		t.Errorf("error of each: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func FuzzScan(f *testing.F) {
	dir := f.TempDir()
	for _, name := range []string{"a.jsonl", "a.parquet"} {
		path := filepath.Join(dir, name)
		write(f, path, sample(1), bare())
		f.Add(must(os.ReadFile(path)))
	}
	f.Add([]byte("PAR1"))
	path := filepath.Join(dir, "fuzzed")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = Scan(path, func(o *features.Observation) error {
			if o.TTFT < 0 || o.E2E < 0 || !(o.Propensity >= 0) {
				t.Fatalf("%+v", o)
			}
			return nil
		})
	})
}
