package evaluate

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// gate is what one target of one file has to hold, in ratios.
type gate struct {
	mape, medape    float64
	covLow, covHigh float64 // of P90, marginally
	bias            float64
	deciles         bool // 7 of 10 load deciles with P90 coverage in .85-.95, none below .75
}

// gates are the accuracy that predictor.md's references and the project's own figures call for.
var gates = map[string]map[string]gate{
	"epp-training-h200/sharegpt-h200.jsonl.gz": {
		"ttft": {.126, .096, .87, .93, .06, false}, "itl": {.0365, .025, .87, .93, .06, false},
	},
	"epp-training-h200/chatbot-synthetic-h200.jsonl.gz": {
		"ttft": {.064, .051, .80, .99, .06, false}, "itl": {.095, .05, .80, .99, .10, false},
	},
	"vllm-cpu/vllm-cpu-homog.csv.gz": {
		"ttft": {.33, .24, .87, .93, .06, true}, "itl": {.42, .312, .87, .93, .06, true},
	},
	"vllm-cpu/vllm-cpu-hetero.csv.gz": {
		"ttft": {.197, .139, .87, .93, .06, true}, "itl": {.209, .178, .87, .93, .06, true},
	},
}

// TestAccuracyOnRecordedRequests replays every file with a fresh learner: the accuracy that the README
// promises, quantiles that hold at every load, a blend that is never much worse than its best member,
// and TTFT never much worse than the physical law.
func TestAccuracyOnRecordedRequests(t *testing.T) {
	if racing || testing.Short() {
		t.Skip("replays of whole files: not under the race detector, not with -short")
	}
	dir := dataDir(t)
	for name, want := range gates {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			parts, err := Load(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if len(parts) != 1 {
				t.Fatalf("%d parts", len(parts))
			}
			f, err := parts[0].Judge(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for target, g := range want {
				g.check(t, target, f)
				published(t, filepath.Base(name), target, f.Targets[target])
			}
			if a := f.Against["ttft"]; a.LawRatio > 1.03 {
				t.Errorf("ttft: %.3f of the law's error", a.LawRatio)
			}
		})
	}
}

func (g gate) check(t *testing.T, target string, f *File) {
	t.Helper()
	s := f.Targets[target]
	if s.N < 1000 || s.Skipped != 500 {
		t.Errorf("%s: %d counted, %d skipped", target, s.N, s.Skipped)
	}
	for _, m := range []struct {
		what             string
		value, low, high float64
	}{
		{"MAPE", s.MAPE, 0, g.mape},
		{"median error", s.MedAPE, 0, g.medape},
		{"coverage of P90", s.Coverage90, g.covLow, g.covHigh},
		{"bias", s.Bias, -g.bias, g.bias},
		{"error against the best member", f.Against[target].BestRatio, 0, 1.10},
	} {
		if !(m.value >= m.low && m.value <= m.high) {
			t.Errorf("%s: %s %.4f, not in [%.3f, %.3f]", target, m.what, m.value, m.low, m.high)
		}
	}
	if !g.deciles {
		return
	}
	var held int
	for d := 1; d <= 10; d++ {
		c := f.Strata[target][Decile(d)].Coverage90
		if c >= .85 && c <= .95 {
			held++
		}
		if c < .75 {
			t.Errorf("%s: %s: P90 covers %.3f", target, Decile(d), c)
		}
	}
	if held < 7 {
		t.Errorf("%s: P90 holds in %d of 10 load deciles", target, held)
	}
}

// published compares the row of a file and target in the first table of docs/prediction.md with what
// was measured: it may be off by a twentieth before it has to be made again.
func published(t *testing.T, name, target string, s Score) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "prediction.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[0] != name || f[1] != target || f[2] != strconv.Itoa(s.N) {
			continue
		}
		for i, v := range []float64{s.MAPE, s.MedAPE, s.P90APE} {
			if said, err := strconv.ParseFloat(f[4+i], 64); err != nil || math.Abs(said-100*v) > .1+.05*100*v {
				t.Errorf("docs/prediction.md says %s for %s, %s, measured %.1f; print the table again", f[4+i], name, target, 100*v)
			}
		}
		return
	}
	t.Errorf("docs/prediction.md has no row for %s, %s with %d requests", name, target, s.N)
}

// dataDir is the folder of the reference data: PRESAGE_DATA, or ../shared/data beside the repository.
// The test is skipped where it is absent.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PRESAGE_DATA")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if root == filepath.Dir(root) {
				t.Fatal("no go.mod above the test")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no reference data in %s: set PRESAGE_DATA", dir)
	}
	return dir
}

// TestUnits: a file of several units gives a part for each, and the runs of a unit stay apart.
func TestUnits(t *testing.T) {
	parts, err := Load(filepath.Join(dataDir(t), "vllm-engine-servingsim", "measured.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) != 3 {
		t.Fatalf("%d units", len(parts))
	}
	for _, p := range parts {
		f, err := p.Judge(t.Context(), Options{Foils: true})
		if err != nil {
			t.Fatal(err)
		}
		s := f.Targets["ttft"]
		if s.N != 200 || s.Skipped != 100 || f.Rows != 300 {
			t.Errorf("%s: %+v", p.Unit, s)
		}
		if !strings.Contains(p.Unit, "vllm-0.19.0") {
			t.Errorf("unit %q", p.Unit)
		}
		for _, rival := range []string{"linear", "tree", "boosted", "law"} {
			if r := f.Rivals["ttft"][rival]; r.N != s.N || !(r.MAPE > 0) || math.IsInf(r.MAPE, 0) {
				t.Errorf("%s: %s: %+v", p.Unit, rival, r)
			}
		}
	}
}
