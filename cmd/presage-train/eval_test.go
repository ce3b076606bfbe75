package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/training/evaluate"
)

const sample = "testdata/vllm-cpu.csv" // the first requests of a measurement of vLLM on a CPU

func evalOf(ctx context.Context, t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(ctx, append([]string{"eval"}, args...), &terminal.Terminal{Out: &out, Err: &err, Width: 80})
	return code, out.String(), err.String()
}

// last is the object on the last line of stdout.
func last(t *testing.T, stdout string) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var v map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &v); err != nil {
		t.Fatalf("last line: %v\n%s", err, lines[len(lines)-1])
	}
	return v
}

func keys(v any) (list []string) {
	m, _ := v.(map[string]any)
	for k := range m {
		list = append(list, k)
	}
	return list
}

// TestEvalJSON: the object that scripts rely on.
func TestEvalJSON(t *testing.T) {
	code, out, errs := evalOf(t.Context(), t, sample, sample, "--json", "--without", "trees,offsets")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	v := last(t, out)
	files := v["files"].([]any)
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	if d := cmp.Diff(files[0], files[1]); d != "" {
		t.Errorf("the same file, judged twice:\n%s", d)
	}
	f := files[0].(map[string]any)
	if f["file"] != sample || f["format"] != "vllm-cpu" || f["rows"] != 150.0 || f["kept"] != 150.0 {
		t.Errorf("file %v, format %v, %v rows, %v kept", f["file"], f["format"], f["rows"], f["kept"])
	}
	for _, target := range evaluate.TargetNames {
		s := f["targets"].(map[string]any)[target].(map[string]any)
		if s["n"] != 100.0 || s["skipped"] != 50.0 {
			t.Errorf("%s: n %v, skipped %v", target, s["n"], s["skipped"])
		}
		for _, name := range []string{"mape", "medape", "p90ape", "bias", "coverage50", "coverage90", "coverage99", "spread"} {
			if _, ok := s[name].(float64); !ok {
				t.Errorf("%s: %s is %v", target, name, s[name])
			}
		}
		for _, name := range []string{"law", "median-30", "trees", "linear", "tree", "boosted"} {
			if !strings.Contains(strings.Join(keys(f["rivals"].(map[string]any)[target]), " "), name) {
				t.Errorf("%s: no rival %s", target, name)
			}
		}
		if n := len(keys(f["strata"].(map[string]any)[target])); n < 12 {
			t.Errorf("%s: %d strata", target, n)
		}
	}
	if got := v["ablations"].(map[string]any); len(got) != 2 || len(got["offsets"].([]any)) != 2 {
		t.Errorf("ablations: %v", keys(got))
	}
}

// TestEvalTables: what people read.
func TestEvalTables(t *testing.T) {
	code, out, errs := evalOf(t.Context(), t, sample, "--strata", "--no-foils", "--without", "trees")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	for _, want := range []string{
		"vllm-cpu.csv: vllm-cpu, 150 rows, 150 kept\n", "Forecasts: errors and coverage in %", "MAPE in %: the blend, its members",
		"vllm-cpu.csv, ttft\n", "load decile 10", "cold, first 100", "windows of 60 s", "Without parts of the learner", "-trees",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "boosted") || strings.Contains(out, "NaN") || strings.Contains(out, "{") {
		t.Errorf("unwanted in\n%s", out)
	}
}

// TestEvalRefuses: wrong usage and files that cannot be judged end with 2, naming place and reason.
func TestEvalRefuses(t *testing.T) {
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"empty.csv": "", "trace.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,4808,10\n",
		"cut.csv.gz": "\x1f\x8b\x08\x00", "other.csv": "a,b\n1,2\n", "good.csv": string(text),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `expected "<file> ..."`},
		{[]string{in("none.csv")}, "none.csv: no such file or directory\n"},
		{[]string{dir}, "is a directory; name one file\n"},
		{[]string{in("empty.csv")}, "empty.csv: "},
		{[]string{in("cut.csv.gz")}, "cut.csv.gz: "},
		{[]string{in("other.csv")}, "other.csv: "},
		{[]string{in("good.csv"), in("trace.csv")}, "trace.csv: no usable row among 1 (no TTFT and no ITL 1); rows with"},
		{[]string{sample, "--without", "luck"}, "--without"},
		{[]string{sample, "--fast"}, "unknown flag --fast"},
	} {
		code, out, errs := evalOf(t.Context(), t, c.args...)
		if code != 2 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
	}
}

// TestEvalInterrupted: what is finished is printed, marked, and the status says so.
func TestEvalInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, out, _ := evalOf(ctx, t, sample, "--json")
	if v := last(t, out); code != 130 || v["partial"] != true {
		t.Errorf("exit %d, %v", code, v)
	}
}

// A unit counts as held when the blend is at most 2 % worse than the better median and the better trees.
func TestStandings(t *testing.T) {
	rivals := evaluate.Rivals{"median-30": {MAPE: .3}, "median-100": {MAPE: .2}, "trees": {MAPE: .5}, "trees-ratio": {MAPE: .25}, "boosted": {MAPE: .4}}
	unit := func(name string, rows int, ttft, itl float64) *evaluate.File {
		return &evaluate.File{
			Unit: name, Rows: rows, Targets: map[string]evaluate.Score{"ttft": {MAPE: ttft}, "itl": {MAPE: itl}},
			Rivals: map[string]evaluate.Rivals{"ttft": rivals, "itl": rivals},
		}
	}
	got := standings([]*evaluate.File{unit("a", 600, .203, .205), unit("small", 599, .1, .1), unit("", 9000, .1, .1)})
	want := []standing{
		{Unit: "a", Target: "ttft", Blend: .203, Median: .2, Trees: .25, Boosted: .4, Holds: true},
		{Unit: "a", Target: "itl", Blend: .205, Median: .2, Trees: .25, Boosted: .4},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("standings (-want +got):\n%s", d)
	}
}
