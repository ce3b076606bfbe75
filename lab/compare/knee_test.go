package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/presage-router/presage/lab/workload"
)

// logistic is a policy whose attainment falls smoothly and is 90 % at the knee; noise moves single runs.
func logistic(rng *rand.Rand, knee, noise float64) func(float64) (Point, error) {
	return func(load float64) (Point, error) {
		const steep = 20
		a := 1/(1+math.Exp(steep*(load/knee-1)-math.Log(1/.9-1)*-1)) + noise*rng.NormFloat64()
		return Point{Load: load, Offered: 100 * load, Attainment: min(max(a, 0), 1), Goodput: 100 * load * a}, nil
	}
}

func TestKneeOfKnownCurves(t *testing.T) {
	loads := []float64{.3, .6, .8, .95, 1.1}
	for _, knee := range []float64{.12, .5, .87, 1.1, 1.6, 4} {
		k, err := search(loads, logistic(rand.New(rand.NewPCG(1, 1)), knee, 0))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(k.Load/knee-1) > .02 || k.Gap > kneeGap || k.Unreached || len(k.Points) > 14 {
			t.Errorf("knee %v: %.3f, gap %.3f, %d runs", knee, k.Load, k.Gap, len(k.Points))
		}
		if want := 100 * k.Load; math.Abs(k.rate()/want-1) > 1e-9 {
			t.Errorf("knee %v: %v requests/s, want %v", knee, k.rate(), want)
		}
		if !slices.IsSortedFunc(k.Points, func(a, b Point) int { return int(math.Copysign(1, a.Load-b.Load)) }) {
			t.Error("points are not in order")
		}
	}
}

// TestKneesThatAreNot: below 90 % at the lowest load, and sustained at the highest.
func TestKneesThatAreNot(t *testing.T) {
	never, err := search([]float64{.5, 1}, func(l float64) (Point, error) { return Point{Load: l, Attainment: .5}, nil })
	if err != nil || never.Load != 0 || never.Unreached || never.Points[0].Load != leastLoad {
		t.Errorf("%+v, %v", never, err)
	}
	always, err := search([]float64{.5, 1}, func(l float64) (Point, error) { return Point{Load: l, Attainment: 1}, nil })
	if err != nil || !always.Unreached || always.Load != 4 {
		t.Errorf("%+v, %v", always, err)
	}
	k := kneeOf("p", []SeedKnee{never, always, {Load: 1, Gap: .2}})
	if k.Zero != 1 || k.Unreached != 1 || !k.Coarse || math.Abs(k.Load-5.0/3) > 1e-12 {
		t.Errorf("%+v", k)
	}
}

// TestKneesCoverTheTruth: of 200 sets of eight noisy sweeps about 95 % have the knee in their interval.
func TestKneesCoverTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	covered, sum := 0, 0.0
	for range 200 {
		var seeds []SeedKnee
		for range 8 {
			k, err := search([]float64{.6, .8, .95, 1.1}, logistic(rng, 1+.05*rng.NormFloat64(), .01))
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, k)
		}
		k := kneeOf("p", seeds)
		sum += k.Load
		if k.CI95[0] <= 1 && 1 <= k.CI95[1] {
			covered++
		}
	}
	if covered < 180 || math.Abs(sum/200-1) > .01 {
		t.Errorf("%d of 200 intervals hold the knee; their mean is %.3f, want 1", covered, sum/200)
	}
}

// TestRatiosOfKnees: paired by seed, from logarithms; seeds without a knee are left out and counted.
func TestRatiosOfKnees(t *testing.T) {
	knees := func(loads ...float64) *Knee {
		var s []SeedKnee
		for _, l := range loads {
			s = append(s, SeedKnee{Load: math.Abs(l), Unreached: l < 0})
		}
		return kneeOf("", s)
	}
	r := KneeRatio(knees(1.2, 2.4, 1, 0, 1, -9), knees(1, 2, 0, 1, -9, 1))
	if math.Abs(r.Ratio-1.2) > 1e-12 || r.Seeds != 2 || r.Zero != 1 || r.Lost != 1 || r.Unreached != 2 || math.Abs(r.CI95[0]-1.2) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if none := KneeRatio(knees(0), knees(1)); none.Seeds != 0 || none.Ratio != 0 {
		t.Errorf("%+v", none)
	}
	mean, n := GeometricMean([]Ratio{{Ratio: 2, Seeds: 8}, {Ratio: .5, Seeds: 8}, {Ratio: 0, Seeds: 0}, {Ratio: 8, Seeds: 1}})
	if math.Abs(mean-2) > 1e-12 || n != 3 {
		t.Errorf("geometric mean %v of %d", mean, n)
	}
	if mean, n := GeometricMean(nil); mean != 0 || n != 0 {
		t.Errorf("%v of %d", mean, n)
	}
}

// TestKneesWhereLoadIsAllThatMatters: events that pass leave a scenario without a knee.
func TestKneesWhereLoadIsAllThatMatters(t *testing.T) {
	for _, name := range workload.Names() {
		s, err := workload.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		none := name == "failures" || name == "upgrade"
		if reason := NoKnee(s); (reason != "") != none {
			t.Errorf("%s: %q", name, reason)
		}
	}
}
