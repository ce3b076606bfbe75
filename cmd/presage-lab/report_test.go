package main

import (
	"math"
	"os"
	"testing"

	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/oracle"
	"github.com/presage-router/presage/lab/report"
)

// TestDifferencesKeepTheirUnit: points of attainment, requests per second of sustained loads, seconds of
// milliseconds, errors of what was answered.
func TestDifferencesKeepTheirUnit(t *testing.T) {
	c := func(metric string, diff float64) compare.Comparison {
		return compare.Comparison{
			A: "a", B: "b", Metric: metric, Diff: diff, CI95: compare.Interval{diff - 0.01, diff + 0.01}, CIAll: compare.Interval{diff - 0.02, diff + 0.02},
			RelativeCI95: compare.Interval{math.NaN(), math.NaN()}, Seeds: 8, SD: 0.01, Holm: 0.02, Values: []float64{diff},
		}
	}
	class := compare.ByClass{Class: "chat", Requests: 900, Comparison: c(compare.PrimaryMetric, 0.05)}
	standing := func(met float64) *compare.Standing {
		return &compare.Standing{
			Mean:    map[string]float64{compare.PrimaryMetric: met, "ttft_p99_ms": 800, "answered_ratio": 0.98},
			Classes: map[string]compare.Class{"chat": {Requests: 900, Attainment: 0.75}},
		}
	}
	o := &compare.Outcome{
		Order: []string{"a", "b"}, Seeds: 8,
		Section: compare.Section{
			Load: 1, Offered: 20, Policies: map[string]*compare.Standing{"a": standing(0.9), "b": standing(0.8)},
			Paired: []compare.Comparison{c("ttft_p99_ms", -40), c("answered_ratio", 0.01)}, ByClass: []compare.ByClass{class},
		},
		Primary: []compare.Comparison{c(compare.PrimaryMetric, 0.1)},
	}
	near := func(what string, got report.Value, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	d := primaryOf(o, &o.Primary[0], 20)
	near("attainment", d.Mean, 10)
	near("its base", d.Base, 80)
	near("its end", d.High, 11)
	near("its end for all", d.All.High, 12)
	e := effectsOf(o, "b")
	if len(e) != 2 || e[0].Metric != report.TTFT99 || e[1].Metric != report.Errors {
		t.Fatalf("%+v", e)
	}
	near("TTFT p99", e[0].Mean, -0.04)
	near("its base", e[0].Base, 0.8)
	near("errors", e[1].Mean, -0.01)
	near("their base", e[1].Base, 0.02)
	if e[1].Low > e[1].Mean || e[1].Mean > e[1].High || !(e[1].SD > 0) {
		t.Errorf("errors: %+v", e[1])
	}
	by := classesOf(o)
	near("class", by[0].Mean, 5)
	near("its base", by[0].Base, 75)

	k := c(compare.KneeMetric, 0.2)
	k.Relative, k.RelativeCI95 = 0.25, compare.Interval{0.2, 0.3}
	o.Knees = map[string]*compare.Knee{"a": {Load: 1.2, Rate: 24}, "b": {Load: 1}}
	d = primaryOf(o, &k, 20)
	near("sustained rate", d.Mean, 4)
	near("its base", d.Base, 20)
	near("its share", d.Relative.Mean, 0.25)
}

func TestCapturedSharesAreOfOneReference(t *testing.T) {
	share, ci := 0.8, [2]float64{0.7, 0.9}
	r := &oracle.Result{
		Load: 1, Attainment: map[string]float64{"round-robin": 70, "predictive": 86, oracle.ByClairvoyant: 88, oracle.ByHindsight: 90, oracle.ByBound: 95},
		Captured: []oracle.Captured{
			{Policy: "predictive", Reference: oracle.ByClairvoyant, Room: 18, Share: &share},
			{Policy: "predictive", Reference: oracle.ByHindsight, Room: 20, Share: &share, CI95: &ci},
			{Policy: "weighted", Reference: oracle.ByHindsight, Room: 20, Refused: "no end"},
		},
	}
	got, refused := capturedOf(r, []string{oracle.ByClairvoyant, oracle.ByHindsight, oracle.ByBound})
	if got.Reference != "best in hindsight" || got.Possible != 20 || len(got.Bars) != 5 || len(refused) != 1 {
		t.Fatalf("%+v, %q", got, refused)
	}
	for i, want := range []float64{math.NaN(), 0.8, 0.9, 1, 1.25} {
		if v := float64(got.Bars[i].Share.Mean); math.Abs(v-want) > 1e-9 || math.IsNaN(v) != math.IsNaN(want) {
			t.Errorf("bar %d is %v, want %v", i, v, want)
		}
	}
}

func TestCommandLinesAreQuoted(t *testing.T) {
	if got := quoted([]string{"compare", "--policies", "predictive:slo=0,a", "", "it's", "$x"}); got != `compare --policies predictive:slo=0,a '' 'it'\''s' '$x'` {
		t.Error(got)
	}
}

func TestReportsOfSeveralScenariosHaveNames(t *testing.T) {
	r := reporting{Report: "dir/out.html"}
	if a, b := r.file("herd", false), r.file("herd", true); a != "dir/out.html" || b != "dir/out-herd.html" {
		t.Error(a, b)
	}
	dir := t.TempDir()
	for file, ok := range map[string]bool{"": true, dir + "/x.html": true, dir: false, dir + "/none/x.html": false} {
		if err := (&reporting{Report: file}).check(); (err == nil) != ok {
			t.Errorf("%q: %v", file, err)
		}
	}
	if err := os.WriteFile(dir+"/old.html", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&reporting{Report: dir + "/old.html"}).check(); err != nil {
		t.Error(err)
	}
}
