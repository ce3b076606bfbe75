package gbdt

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// edges are values around which comparisons of different widths differ.
var edges = []float64{0, math.Copysign(0, -1), 1e-35, -1e-35, float64(zero), -float64(zero), 1.0000000180025095e-35, -1.0000000180025095e-35,
	2e-35, -2e-35, 1e-36, 1e-45, -1e-45, 0.1, float64(float32(0.1)), 1, -1, 1 + 1e-9, 16777217, 1e300, -1e300, math.MaxFloat32, -math.MaxFloat32}

func drawEdge(t *rapid.T, name string) float64 {
	return rapid.OneOf(rapid.SampledFrom(edges), rapid.Float64Range(-2, 2), rapid.Float64()).Draw(t, name)
}

// numericalDecision is LightGBM's, of float64 values (Tree::NumericalDecision): whether a row goes left.
func numericalDecision(v float64, decision int, threshold float64) bool {
	missing := decision >> 2 & 3 // none, zero, NaN
	if math.IsNaN(v) && missing != 2 {
		v = 0
	}
	const zero = float64(float32(1e-35))
	if missing == 1 && v > -zero && v <= zero || missing == 2 && math.IsNaN(v) {
		return decision&2 != 0
	}
	return v <= threshold
}

// TestSplitsDecideLikeTheirLibraries: one split, planted, sends every float32 where the library's own
// comparison does, LightGBM's in float64 and XGBoost's in float32.
func TestSplitsDecideLikeTheirLibraries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := drawEdge(t, "threshold")
		decision := rapid.SampledFrom([]int{0, 2, 4, 6, 8, 10}).Draw(t, "decision")
		x := []float32{rapid.OneOf(rapid.Just(nan()), rapid.Map(rapid.SampledFrom(edges), func(v float64) float32 { return float32(v) }),
			rapid.Just(float32(threshold)), rapid.Just(math.Nextafter32(float32(threshold), 0)), rapid.Float32(),
			rapid.Just(float32(math.Inf(1))), rapid.Just(float32(math.Inf(-1)))).Draw(t, "x")}
		check := func(what string, b branch, left bool) {
			f := &Forest{dim: 1, scale: 1}
			b.left, b.right = ^0, ^1
			if err := f.plant(0, []branch{b}, []float64{-1, 1}, []int{0}); err != nil {
				t.Fatal(err)
			}
			want := 1.0
			if left {
				want = -1
			}
			var c Columns
			c.Fill(1, func(int) []float32 { return x })
			dst := make([]float32, 1)
			f.PredictColumns(dst, &c)
			if got := f.Predict(x); got != want || float64(dst[0]) != want {
				t.Fatalf("%s: %v goes to %v, by columns %v, not %v", what, x[0], got, dst[0], want)
			}
		}
		var b branch
		if err := b.decide(decision, threshold); err != nil {
			t.Fatal(err)
		}
		check("LightGBM", b, numericalDecision(float64(x[0]), decision, threshold))
		cut := float32(threshold)
		if math.IsInf(float64(cut), 0) {
			return // no such file: JSON has no infinite numbers
		}
		left := x[0] < cut
		if x[0] != x[0] {
			left = decision&2 != 0
		}
		check("XGBoost", branch{cut: before(cut), missing: decision&2 == 0}, left)
	})
}

func TestPlantRefusesWhatIsNoTree(t *testing.T) {
	ok := func(left, right int) branch { return branch{left: left, right: right} }
	chain := make([]branch, maxPath+1)
	leaves := make([]float64, maxPath+2)
	for i := range chain {
		chain[i] = ok(^i, i+1)
	}
	chain[maxPath].right = ^(maxPath + 1)
	for _, c := range []struct {
		name     string
		branches []branch
		leaves   []float64
		want     string
	}{
		{"cycle", []branch{ok(^0, 1), ok(^1, 0)}, []float64{1, 2, 3}, "node 0: reached twice: children must form a tree"},
		{"itself", []branch{ok(0, ^0)}, []float64{1, 2}, "node 0: reached twice: children must form a tree"},
		{"shared leaf", []branch{ok(^0, ^0)}, []float64{1, 2}, "leaf 0: reached twice: children must form a tree"},
		{"child too high", []branch{ok(^0, 7)}, []float64{1, 2}, "node 7: not in 0..0"},
		{"leaf too high", []branch{ok(^0, ^2)}, []float64{1, 2}, "leaf 2: not in 0..1"},
		{"NaN", []branch{ok(^0, ^1)}, []float64{1, math.NaN()}, "leaf 1: value NaN: not within 1e+30 of zero"},
		{"feature", []branch{{feature: 3, left: ^0, right: ^1}}, []float64{1, 2}, "node 0: feature 3: not in 0..1"},
		{"negative feature", []branch{{feature: -1, left: ^0, right: ^1}}, []float64{1, 2}, "node 0: feature -1: not in 0..1"},
		{"deep", chain, leaves, "node 256: more than 256 splits from the root"},
	} {
		f := &Forest{dim: 2, scale: 1}
		if err := f.plant(0, c.branches, c.leaves, []int{0, 1}); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// TestForecastsAreFinite: a forest whose trees could add up to more than its objective can turn into a
// number is refused.
func TestForecastsAreFinite(t *testing.T) {
	for _, c := range []struct {
		link link
		leaf float64
		ok   bool
	}{{identity, 1e30, true}, {exponent, 7, true}, {exponent, 9, false}, {square, 1e17, true}, {square, 2e17, false}} {
		f := &Forest{dim: 1, scale: 1, link: c.link}
		for range 10 {
			if err := f.plant(0, []branch{{left: ^0, right: ^1}}, []float64{-c.leaf, c.leaf}, []int{0}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.finish(); (err == nil) != c.ok {
			t.Errorf("link %d, leaves of %v: %v", c.link, c.leaf, err)
		}
		if v := float32(f.Predict([]float32{1})); c.ok && math.IsInf(float64(v), 0) {
			t.Errorf("link %d, leaves of %v: forecast %v", c.link, c.leaf, v)
		}
	}
}
