package adaptive

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/router"
)

func anyCurve(t *rapid.T) Curve {
	low := rapid.Float64Range(0.01, 0.8).Draw(t, "low")
	return Curve{
		Low: low, High: rapid.Float64Range(low+0.01, 0.99).Draw(t, "high"), Slope: rapid.Float64Range(0.1, 100).Draw(t, "slope"),
		Centre: rapid.Float64Range(-3, 3).Draw(t, "centre"), Skew: rapid.Float64Range(0.05, 20).Draw(t, "skew"),
	}
}

// TestConfiguratorIsMonotone: more of what a detector sees never moves weight against its direction,
// through curve and ladder alike.
func TestConfiguratorIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCurve(t)
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		w := watched{Watch: Watch{Toward: router.Category(rapid.IntRange(0, 1).Draw(t, "toward")), Gain: rapid.Float64Range(0.01, 5).Draw(t, "gain")}, active: true}
		rest := rapid.Float64Range(-3, 3).Draw(t, "others")
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		w.value = min(a, b)
		low := rest + w.push()
		w.value = max(a, b)
		high := rest + w.push()
		if w.Toward == router.Affinity {
			low, high = high, low
		}
		if c.Share(low) > c.Share(high) {
			t.Fatalf("share %v at %v, %v at %v", c.Share(low), low, c.Share(high), high)
		}
		from := rapid.IntRange(0, rungs).Draw(t, "from")
		if x, y := climb(&c, from, c.Share(low)), climb(&c, from, c.Share(high)); x > y || x < 0 || y > rungs {
			t.Fatalf("rungs %d and %d from %d", x, y, from)
		}
		for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
			if s := c.Share(x); !(s >= c.Low && s <= c.High) {
				t.Fatalf("share at %v: %v", x, s)
			}
		}
	})
}

// TestLadderHoldsStill: a share that wanders by less than half a step does not move the weights, and
// one that stays is reached to a step.
func TestLadderHoldsStill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCurve(t)
		step := (c.High - c.Low) / rungs
		share := rapid.Float64Range(c.Low, c.High).Draw(t, "share")
		at := climb(&c, rapid.IntRange(0, rungs).Draw(t, "from"), share)
		if off := math.Abs(c.Low + float64(at)*step - share); off > 0.76*step {
			t.Fatalf("%v steps from the share", off/step)
		}
		at = climb(&c, -1, share)
		near := min(max(share+rapid.Float64Range(-0.24, 0.24).Draw(t, "wander")*step, c.Low), c.High)
		if got := climb(&c, at, near); got != at {
			t.Fatalf("from %d to %d", at, got)
		}
	})
}

// TestB40AdaptiveBudget: on every rung weights are above 0, sum up to 1, and keep their proportions
// within a side, so that a scorer that lost can return.
func TestB40AdaptiveBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCurve(t)
		o := Defaults(router.Params{})
		static := make([]float64, len(o.Scorers))
		for i := range o.Scorers {
			o.Scorers[i].Part = rapid.Float64Range(1e-3, 1e3).Draw(t, "part")
		}
		ladder, err := newLadder(&c, o.Scorers, static)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ladder {
			var side [2]float64
			for i, p := range o.Scorers {
				if !(r.weights[i] > 0) {
					t.Fatalf("weight %v of %s", r.weights[i], p.Scorer.Name())
				}
				side[p.Scorer.Category()] += r.weights[i]
				first := ladder[0].weights
				for j, o := range o.Scorers[:i] {
					if o.Scorer.Category() == p.Scorer.Category() && math.Abs(r.weights[i]/r.weights[j]/(first[i]/first[j])-1) > 1e-9 {
						t.Fatalf("proportion of %s to %s changes", p.Scorer.Name(), o.Scorer.Name())
					}
				}
			}
			if sum := side[0] + side[1]; math.Abs(sum-1) > 1e-9 || math.Abs(side[router.Distribution]-r.share) > 1e-9 {
				t.Fatalf("sum %v, distribution %v of %v", sum, side[1], r.share)
			}
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	nan := math.NaN()
	for want, set := range map[string]func(*Options){
		"curve: shares from 0.9 to 0.2":          func(o *Options) { o.Curve.Low, o.Curve.High = 0.9, 0.2 },
		"curve: shares from NaN":                 func(o *Options) { o.Curve.Low = nan },
		"curve: slope 0":                         func(o *Options) { o.Curve.Slope = 0 },
		"curve: skew NaN":                        func(o *Options) { o.Curve.Skew = nan },
		"curve: centre":                          func(o *Options) { o.Curve.Centre = math.Inf(1) },
		"peak prefill: -1":                       func(o *Options) { o.PeakPrefill = -1 },
		"watches[0]: no detector":                func(o *Options) { o.Watches[0].Detector = nil },
		"watches.imbalance: given twice":         func(o *Options) { o.Watches = append(o.Watches, o.Watches[0]) },
		"watches.burst: gain NaN":                func(o *Options) { o.Watches[1].Gain = nan },
		"watches.burst: exits at 0.5":            func(o *Options) { o.Watches[1].Exit, o.Watches[1].Enter = 0.5, 0.5 },
		"watches.burst: up -1ns":                 func(o *Options) { o.Watches[1].Up = -1 },
		"scorers[0]: none given":                 func(o *Options) { o.Scorers[0].Scorer = nil; o.Static = nil },
		"scorers.prefix: part 0":                 func(o *Options) { o.Scorers[0].Part = 0 },
		"scorers.prefix: given twice":            func(o *Options) { o.Scorers = append(o.Scorers, o.Scorers[0]) },
		"scorers: none on the side of affinity":  func(o *Options) { o.Scorers = o.Scorers[2:]; delete(o.Static, "prefix") },
		"static.prefx: no such scorer":           func(o *Options) { o.Static["prefx"] = 1 },
		"static.prefix: -1: not within 0 and 1e": func(o *Options) { o.Static["prefix"] = -1 },
	} {
		o := Defaults(router.Params{})
		set(&o)
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s…", err, want)
		}
	}
}
