package evaluate

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/presage-router/presage/features"
)

var near = cmpopts.EquateApprox(1e-6, 1e-6)

// pairAt is a forecast of 1 s, P90 2 s, P99 4 s.
func pairAt(actual float64) pair {
	return pair{p: features.Prediction{Mean: 1, P50: 1, P90: 2, P99: 4}, actual: actual, x: new(features.Vector), at: math.NaN()}
}

func TestScore(t *testing.T) {
	got := score([]pair{pairAt(.5), pairAt(1), pairAt(2), pairAt(4), pairAt(5)})
	want := Score{
		N: 5, MAPE: (1 + 0 + .5 + .75 + .8) / 5, MedAPE: .75, P90APE: .92, Bias: -math.Log(2),
		Coverage50: .4, Coverage90: .6, Coverage99: .8, Spread: 2,
	}
	if d := cmp.Diff(want, got, near); d != "" {
		t.Errorf("score (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Score{}, score(nil)); d != "" {
		t.Errorf("score of nothing: %s", d)
	}
}

// A member that is silent is heard through the slow regression, and the best one is found.
func TestMembers(t *testing.T) {
	log := func(v float64) float32 { return float32(math.Log(v)) }
	nan := float32(math.NaN())
	pairs := []pair{pairAt(2), pairAt(2)}
	pairs[0].said = [features.Members]float32{log(4), log(8), log(1.9), log(1), log(8), log(8), nan, log(8)}
	pairs[1].said = [features.Members]float32{log(4), log(8), log(1.9), log(3), log(8), log(8), log(2), log(8)}
	r := members(pairs)
	if d := cmp.Diff(Point{N: 2, Silent: 1, MAPE: .25, MedAPE: .25, P90APE: .45, Bias: -math.Log(2) / 2}, r["trees"], near); d != "" {
		t.Errorf("trees (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Against{Best: "ridge-fast", BestRatio: 10, LawRatio: .5}, against(pairs), near); d != "" {
		t.Errorf("against (-want +got):\n%s", d)
	}
}

func TestStrata(t *testing.T) {
	var pairs []pair
	for i := range 20 {
		p := pairAt(1)
		p.inflight = float64(19 - i)
		p.hit = i%4 == 0
		p.drifted = i < 5
		p.x = new(features.Vector)
		switch {
		case i < 2:
			p.x[features.Waiting], p.x[features.Pending] = 1, 1
		case i < 5:
			p.x[features.Pending] = 1
		}
		if p.inflight == 0 {
			p.actual = 3
		}
		pairs = append(pairs, p)
	}
	s := strata(pairs, pairs[:7])
	n := map[string]int{}
	for name, part := range s {
		n[name] = part.N
	}
	want := map[string]int{
		"hit": 5, "miss": 15, "saturated": 2, "queued": 3, "streaming": 14, "idle": 1,
		"after drift": 5, "steady": 15, "cold, first 100": 7,
	}
	for d := 1; d <= 10; d++ {
		want[Decile(d)] = 2
	}
	if d := cmp.Diff(want, n); d != "" {
		t.Errorf("strata (-want +got):\n%s", d)
	}
	if c := s[Decile(1)].Coverage90; c != .5 {
		t.Errorf("the least loaded decile covers %v", c)
	}
}

func TestWindows(t *testing.T) {
	var pairs []pair
	for run := range 2 {
		for i := range 90 { // 60 in the first minute, 30 in the second
			p := pairAt(1)
			p.run, p.at = run, float64(i)
			if run == 1 && i < 30 {
				p.actual = 3
			}
			pairs = append(pairs, p)
		}
	}
	late := pairAt(3) // alone in its minute: not counted
	late.at = 200
	got := windows(append(pairs, late, pairAt(3)))
	if d := cmp.Diff(Windows{Seconds: 60, N: 4, Least: .5, P10: .65, P50: 1, P90: 1, Below75: 1}, got, near); d != "" {
		t.Errorf("windows (-want +got):\n%s", d)
	}
}

// The first forecasts made after the times jumped are those after drift.
func TestDriftIsMarked(t *testing.T) {
	var fc forecasts
	for i := range 2000 {
		p := pairAt(1 + .1*math.Sin(float64(i)))
		if i >= 600 && i < 700 {
			p.actual *= 3
		}
		p.known = i
		fc.pairs = append(fc.pairs, p)
		fc.labels = append(fc.labels, i)
	}
	if n := fc.markDrift(); n < 1 {
		t.Fatalf("%d alarms", n)
	}
	if fc.pairs[599].drifted || !fc.pairs[650].drifted || fc.pairs[1999].drifted {
		t.Errorf("drifted: %v before, %v in, %v long after", fc.pairs[599].drifted, fc.pairs[650].drifted, fc.pairs[1999].drifted)
	}
}

func TestSkip(t *testing.T) {
	for n, want := range map[int]int{0: 0, 2: 0, 3: 1, 600: 200, 1499: 499, 1500: 500, 9000: 500} {
		if got := Skip(n); got != want {
			t.Errorf("Skip(%d) = %d, want %d", n, got, want)
		}
	}
}
