package gbdt

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// edges are values around which comparisons of different widths differ.
var edges = []float64{0, math.Copysign(0, -1), 1e-35, -1e-35, float64(zero), -float64(zero), 1.0000000180025095e-35, -1.0000000180025095e-35,
	2e-35, -2e-35, 1e-36, 1e-45, -1e-45, 0.1, float64(float32(0.1)), 1, -1, 1 + 1e-9, 16777217, 1e300, -1e300, math.MaxFloat32, -math.MaxFloat32, math.Inf(1), math.Inf(-1)}

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
// comparison does, LightGBM's in float64 and XGBoost's in float32: every edge against every other, and
// the values next to each.
func TestSplitsDecideLikeTheirLibraries(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	thresholds := slices.Clone(edges)
	for range 40 {
		thresholds = append(thresholds, rng.NormFloat64()*math.Pow(10, float64(rng.IntN(80)-40)))
	}
	inf := float32(math.Inf(1))
	var rows [][]float32
	for _, v := range []float32{nan(), inf, -inf} {
		rows = append(rows, []float32{v})
	}
	for _, v := range thresholds {
		f := float32(v)
		rows = append(rows, []float32{f}, []float32{math.Nextafter32(f, inf)}, []float32{math.Nextafter32(f, -inf)})
	}
	var cols Columns
	cols.Fill(len(rows), func(r int) []float32 { return rows[r] })
	dst := make([]float32, len(rows))
	check := func(what string, threshold float64, decision int, b branch, left func(v float32) bool) {
		f := &Forest{dim: 1, scale: 1}
		b.left, b.right = ^0, ^1
		if err := f.plant(0, []branch{b}, []float64{-1, 1}, []int{0}); err != nil {
			t.Fatal(err)
		}
		f.PredictColumns(dst, &cols)
		for r, x := range rows {
			want := 1.0
			if left(x[0]) {
				want = -1
			}
			if got := f.Predict(x); got != want || float64(dst[r]) != want {
				t.Errorf("%s, threshold %v, decision %d: %v goes to %v, by columns %v, not %v", what, threshold, decision, x[0], got, dst[r], want)
			}
		}
	}
	for _, threshold := range thresholds {
		for decision := 0; decision <= 10; decision += 2 {
			var b branch
			if err := b.decide(decision, threshold); err != nil {
				t.Fatal(err)
			}
			check("LightGBM", threshold, decision, b, func(v float32) bool { return numericalDecision(float64(v), decision, threshold) })
		}
		cut := float32(threshold)
		if math.IsInf(float64(cut), 0) {
			continue // no such file: JSON has no infinite numbers
		}
		for _, missing := range []bool{false, true} {
			check("XGBoost", threshold, 0, branch{cut: before(cut), missing: missing}, func(v float32) bool { return v < cut || v != v && !missing })
		}
	}
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
