package main

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/training/trace"
)

// execute runs one command line.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), args, &terminal.Terminal{Out: &out, Err: &err, Width: 80})
	return code, out.String(), err.String()
}

// served logs so many requests of an engine that takes so many times longer than another, the last
// of them ten minutes ago.
func served(t *testing.T, dir string, n int, slower float64) {
	t.Helper()
	l, err := trace.Open(dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(n), 9))
	begin := time.Now().Add(-10*time.Minute - time.Duration(n)*time.Second)
	for i := range n {
		o := features.Observation{
			ID: "d-1", At: begin.Add(time.Duration(i) * time.Second), Model: "llama-3.1-8b", Stream: true, Schema: features.Schema(),
			Endpoint: "h100-1", Picked: "h100-1", Policy: "predictive", Propensity: 1, Status: 200, Cause: fleet.Complete,
			Where:        features.Where{Class: unique.Make(fleet.Class{Model: "llama-3.1-8b", GPU: "H100", Engine: "vllm", TP: 1}), Instance: 9},
			OutputTokens: 50 + rng.IntN(300), CachedTokens: features.Unknown, PromptTokens: 100 + rng.IntN(4000), Said: features.Nothing(),
		}
		o.X[features.Prompt], o.X[features.Uncached] = float32(o.PromptTokens), float32(o.PromptTokens)
		noise := slower * math.Exp(.1*rng.NormFloat64())
		o.TTFT = time.Duration((.02 + 30e-6*float64(o.PromptTokens)) * noise * 1e9)
		o.ITL = time.Duration(.008 * noise * 1e9)
		o.E2E = o.TTFT + time.Duration(o.OutputTokens-1)*o.ITL
		l.Observe(&o)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFromTraceToChampion walks the way of an operator: log, export, fit, look, promote, go back.
func TestFromTraceToChampion(t *testing.T) {
	dir := t.TempDir()
	log, models := filepath.Join(dir, "trace"), filepath.Join(dir, "models")
	served(t, log, 400, 1)
	for _, name := range []string{"all.parquet", "all.jsonl"} {
		path := filepath.Join(dir, name)
		code, out, errs := execute(t, "export", "--from", log, "--to", path, "--json")
		if code != 0 || last(t, out)["rows"] != 400. {
			t.Fatalf("export %s: %d, %s%s", name, code, out, errs)
		}
	}
	if code, out, _ := execute(t, "export", "--from", filepath.Join(dir, "all.parquet"), "--to", filepath.Join(dir, "last.jsonl"), "--since", "11m", "--json"); code != 0 || last(t, out)["rows"].(float64) > 65 {
		t.Errorf("export --since: %d, %s", code, out)
	}
	code, out, errs := execute(t, "fit", "--from", log, "--out", models, "--promote", "--json")
	if code != 0 {
		t.Fatalf("fit: %d, %s", code, errs)
	}
	v := last(t, out)
	for _, key := range []string{"model", "schema", "metrics", "baselines", "gate", "promoted"} {
		if _, ok := v[key]; !ok {
			t.Errorf("fit: no %q in %v", key, v)
		}
	}
	if v["model"] != "v1" || v["promoted"] != true {
		t.Errorf("fit: %v", v)
	}
	// The champion knows these records already: it stays, whatever the new model says.
	code, out, _ = execute(t, "fit", "--from", filepath.Join(dir, "all.jsonl"), "--out", models, "--promote", "--json")
	if v := last(t, out); code != 0 || v["model"] != "v2" || v["promoted"] != false {
		t.Errorf("second fit: %d, %v", code, v)
	}
	if code, out, _ := execute(t, "list", "--models", models); code != 0 || !strings.Contains(out, "* v1") || !strings.Contains(out, "  v2") {
		t.Errorf("list: %d, %s", code, out)
	}
	if code, out, _ := execute(t, "show", "--models", models); code != 0 || !strings.Contains(out, "# Model v1") || !strings.Contains(out, "| ttft | this model | 100 |") {
		t.Errorf("show: %d, %s", code, out)
	}
	if card, err := os.ReadFile(filepath.Join(models, "v2.md")); err != nil || !strings.Contains(string(card), "learned from the judged records itself") {
		t.Errorf("card: %v\n%s", err, card)
	}
	for _, step := range []struct{ args, want string }{{"v2", "v2"}, {"--back", "v1"}} {
		if code, out, _ := execute(t, "promote", "--models", models, "--json", step.args); code != 0 || last(t, out)["champion"] != step.want {
			t.Errorf("promote %s: %d, %s", step.args, code, out)
		}
	}
}

func TestBadInputOfModels(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"fit --from none --out " + dir:               {2, "--from none: cannot be read"},
		"fit --out " + dir:                           {2, "--from"},
		"export --from " + dir + " --to x.csv":       {2, "use .parquet or .jsonl"},
		"export --from " + dir + " --to x.jsonl":     {2, "holds no trace"},
		"list --models none":                         {2, "--models none: no such directory"},
		"show --models " + dir:                       {1, "no champion yet"},
		"show --models " + dir + " v9":               {1, "no such model"},
		"promote --models " + dir:                    {2, "name a model, or --back"},
		"promote --models " + dir + " --back":        {1, "no champion before"},
		"promote --models " + dir + " ../../x":       {1, "no name of a model"},
		"export --from a --to b.jsonl --since never": {2, `"never" is no time`},
	} {
		code, _, errs := execute(t, strings.Fields(args)...)
		if code != want.code || !strings.Contains(errs, want.text) {
			t.Errorf("%s: %d, %s", args, code, errs)
		}
	}
}

// TestExportFromRunningService: while a service writes the log, the way to its rows is the service.
func TestExportFromRunningService(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	served(t, dir, 10, 1)
	running, err := trace.Open(dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	for _, args := range [][]string{{"export", "--from", dir, "--to", filepath.Join(t.TempDir(), "x.jsonl")}, {"fit", "--from", dir, "--out", t.TempDir()}} {
		code, _, errs := execute(t, args...)
		if code != 2 || !strings.Contains(errs, "--from "+dir+": in use by another process") || !strings.Contains(errs, "curl -fsS -o trace.jsonl 'http://127.0.0.1:9090/trace?since=24h'") {
			t.Errorf("%v: %d, %s", args, code, errs)
		}
	}
}
