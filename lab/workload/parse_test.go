package workload

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
)

func fixtures(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "scenario", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	return files
}

// The first comments of a bad fixture are the faults it must be refused with, all of them.
func TestBadScenarios(t *testing.T) {
	for _, file := range fixtures(t, "*.bad.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for l := range strings.SplitSeq(string(data), "\n") {
			c, ok := strings.CutPrefix(l, "# ")
			if !ok {
				break
			}
			want = append(want, c)
		}
		_, err = Parse(filepath.Base(file), data)
		if err == nil {
			t.Errorf("%s: accepted", file)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		for _, w := range want {
			if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) }) {
				t.Errorf("%s: missing %q", file, w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d faults, want %d:\n%s", file, len(got), len(want), err)
		}
	}
}

func TestGoodScenarios(t *testing.T) {
	for _, file := range fixtures(t, "*.good.yaml") {
		if _, err := Load(file); err != nil {
			t.Error(err)
		}
	}
}

func TestEverything(t *testing.T) {
	s, err := Load(filepath.Join("testdata", "scenario", "everything.good.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(k string, a, b, lo, hi float64) Dist { return Dist{Kind: k, A: a, B: b, Min: lo, Max: hi} }
	want := &Scenario{
		Name: "everything", About: "every key there is", Expects: "two\nlines", Origin: "a test",
		Duration: 100 * time.Second, Warmup: 10 * time.Second, Loads: []float64{.5, 1, 2},
		Fleet: []Engines{
			{Count: 2, GPU: "H100", Model: "llama-3.1-8b", TP: 1, DType: "bfloat16", Profile: "sync", MaxSeqs: 64, MaxBatched: 2048, Blocks: 1000, MaxLoRA: 8, Slowdown: 1.5},
			{Count: 1, GPU: "H200", Model: "llama-3.3-70b", TP: 2, DType: "fp8"},
		},
		Traffic: []Traffic{
			{
				Class: "chat", Model: "llama", From: 10 * time.Second, Until: 90 * time.Second,
				Arrivals: []Arrivals{
					{Kind: "poisson", Rate: 3}, {Kind: "gamma", Rate: 2, CV: 3},
					{Kind: "square", Rate: 1, High: 5, Every: 20 * time.Second, Length: 5 * time.Second},
					{Kind: "spikes", Rate: 100, Every: 30 * time.Second, Length: 500 * time.Millisecond, First: 5 * time.Second},
					{Kind: "burst", Count: 10, Every: 15 * time.Second, Length: 200 * time.Millisecond, First: time.Second},
				},
				Prompt: tokens("lognormal", 100, 1, 5, 1000), Output: tokens("normal", 100, 20, 1, maxTokens),
				Prefix: []Prefix{
					{Groups: 1, Tokens: tokens("fixed", 100, 0, 1, maxTokens), Pick: Pick{Kind: "uniform"}, Renew: 20 * time.Second},
					{Groups: 7, Tokens: tokens("uniform", 50, 150, 1, maxTokens), Pick: Pick{Kind: "zipf", S: 1.1}, Tenants: true},
					{Groups: 3, Tokens: tokens("fixed", 20, 0, 1, maxTokens), Pick: Pick{Kind: "cycle"}},
				},
				Users: 5, Adapters: 4, AdapterPick: Pick{Kind: "zipf", S: 1},
				SLO: request.SLO{TTFT: 250 * time.Millisecond}, Priority: -3, MaxTokens: 100, Timeout: 30 * time.Second,
				CancelShare: .5, CancelTokens: tokens("geometric", 10, 0, 1, maxTokens),
			},
			{
				Class: "talk",
				Arrivals: []Arrivals{{
					Kind: "closed", Count: 3, Ramp: 5 * time.Second, Think: tokens("loguniform", 1, 5, 0, 1e6),
					Steps: []Step{{At: 50 * time.Second, Users: 6}},
				}},
				Prompt:  Dist{Kind: "quantiles", P: []float64{0, .5, 1}, Q: []float64{1, 50, 1000}, Min: 1, Max: maxTokens},
				Output:  tokens("fixed", 20, 0, 1, maxTokens),
				Session: &Session{Turns: tokens("geometric", 3, 0, 1, 9), Think: tokens("fixed", .5, 0, 0, 1e6), Next: tokens("fixed", 30, 0, 1, maxTokens), Limit: 2000},
			},
			{
				Class: "recorded", SLO: request.SLO{TTFT: time.Second, ITL: 40 * time.Millisecond, E2E: 30 * time.Second},
				Trace: &Trace{
					File: filepath.Join("testdata", "scenario", "x.csv"), Format: datasets.Azure, Where: "here", Speed: 2, From: 10 * time.Second,
					Length: time.Minute, Run: "a", Copies: 3, Waits: true, Output: tokens("fixed", 5, 0, 1, maxTokens),
				},
			},
		},
		Events: []cluster.Event{
			{At: 10 * time.Second, Nodes: []int{0, 1}, Kind: cluster.Slow, Factor: 3},
			{At: 20 * time.Second, Nodes: []int{0}, Kind: cluster.Stall, Length: 5 * time.Second},
			{At: 30 * time.Second, Nodes: []int{1}, Kind: cluster.Upgrade, Profile: engine.Async(), MaxSeqs: 128, MaxBatched: 4096},
			{At: 40 * time.Second, Nodes: []int{1}, Kind: cluster.Fail, Factor: .05},
			{At: 50 * time.Second, Nodes: []int{1}, Kind: cluster.Blind, Length: 10 * time.Second},
			{At: 90 * time.Second, Nodes: []int{2}, Kind: cluster.Kill},
			{At: 95 * time.Second, Nodes: []int{2}, Kind: cluster.Revive},
		},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Cluster(table)
	if err != nil || len(cfg.Nodes) != 3 || cfg.Adapters != 4 || len(cfg.Events) != 7 || cfg.Duration != 100*time.Second {
		t.Errorf("%v: %+v", err, cfg)
	}
	if e := cfg.Nodes[1].Engine; e.MaxSeqs != 64 || e.Blocks != 1000 || e.Profile != engine.Sync() || cfg.Nodes[2].Engine.Coefs.DType != "fp8" {
		t.Errorf("engine %+v", e)
	}
	if s.Endpoints() != 3 || s.NeedsTrace() {
		t.Errorf("%d endpoints, needs a trace: %v", s.Endpoints(), s.NeedsTrace())
	}
}

// Files that would take the YAML parser minutes or its stack are refused before.
func TestImplausibleScenarios(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"size":    {strings.Repeat("# comment\n", 7000), "f: longer than 64 KiB"},
		"line":    {"name: " + strings.Repeat("x", 1000), "f:1: longer than 1000 bytes"},
		"depth":   {"\n" + strings.Repeat("[", 900), "f:2: nested too deep"},
		"anchors": {strings.Repeat("a: &a\n", 300), "f:201: nested too deep"},
		"nul":     {"a: b\n\x00", "f:2: holds a NUL byte"},
		"bytes":   {"a: \xff", "f: not UTF-8"},
	} {
		if _, err := Parse("f", []byte(c.text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	none := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := Load(none); !errors.Is(err, os.ErrNotExist) || err.Error() != none+": no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "longer than 64 KiB") {
		t.Errorf("big file: %v", err)
	}
}

func TestBuiltins(t *testing.T) {
	want := []string{
		"agentic", "azure", "bursts", "codechat", "cold-start", "failures", "herd", "hot-prefix-spikes", "kv-pressure", "lora", "mixed-gpus", "mixed-sizes", "mooncake", "multi-turn",
		"reasoning", "servegen", "shift", "slo-classes", "slow-endpoint", "steady", "tenants", "upgrade",
	}
	if d := cmp.Diff(want, Names()); d != "" {
		t.Error(d)
	}
	for _, name := range Names() {
		s, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != name || strings.Contains(s.About, "\n") || len(s.Expects) < 100 || s.Origin == "" || s.Warmup*2 > s.Duration {
			t.Errorf("%s: name %q, about %q, %d bytes of expects, origin %q, warm-up %s of %s", name, s.Name, s.About, len(s.Expects), s.Origin, s.Warmup, s.Duration)
		}
		needs := slices.Contains([]string{"agentic", "azure", "mooncake", "servegen"}, name)
		if s.NeedsTrace() != needs {
			t.Errorf("%s: needs a trace: %v", name, s.NeedsTrace())
		}
		if _, err := s.Source(Options{Seed: 1}); needs != (err != nil) || needs && !strings.Contains(err.Error(), "give its file with --trace FILE (") {
			t.Errorf("%s: without a trace: %v", name, err)
		}
	}
	if _, err := Open("hurd"); err == nil || !strings.Contains(err.Error(), `"hurd" unknown; did you mean herd?`) {
		t.Error(err)
	}
	if _, err := Open("./hurd.yaml"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// The example of the documentation is a scenario, and every key it explains is one.
func TestDocumentedExample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "scenario.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "```yaml\n")
	example, _, end := strings.Cut(rest, "```")
	if !ok || !end {
		t.Fatal("no example in docs/scenario.md")
	}
	s, err := Parse("docs/scenario.md", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	src, err := s.Source(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if jobs := pull(t, src, 1000); len(jobs) < 1000 {
		t.Errorf("%d jobs", len(jobs))
	}
	for _, name := range Names() {
		if !strings.Contains(string(data), "| "+name+" |") {
			t.Errorf("docs/scenario.md does not list %s", name)
		}
	}
}
