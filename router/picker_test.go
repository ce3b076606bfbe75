package router

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// frequencies picks n times and checks each propensity against the chances of the picker.
func frequencies(t testing.TB, p Picker, keep []bool, score []float64, n int) []float64 {
	t.Helper()
	q := &Query{Rand: rand.New(rand.NewPCG(3, 4))}
	chances := make([]float32, len(keep))
	if d, ok := p.(Drawer); ok {
		d.Chances(keep, score, chances)
	} else {
		best, ties := highest(keep, score)
		for i, k := range keep {
			if k && score[i] == best {
				chances[i] = 1 / float32(ties)
			}
		}
	}
	got := make([]float64, len(keep))
	for range n {
		i, propensity := p.Pick(q, keep, score)
		if !keep[i] || math.Abs(propensity-float64(chances[i])) > 1e-6 {
			t.Fatalf("picked %d with propensity %v, chance %v", i, propensity, chances[i])
		}
		got[i] += 1 / float64(n)
	}
	for i := range got {
		p := float64(chances[i])
		if sigma := math.Sqrt(p * (1 - p) / float64(n)); math.Abs(got[i]-p) > 5*sigma+1e-9 {
			t.Errorf("endpoint %d was picked %.4f of the time, its chance is %.4f", i, got[i], p)
		}
	}
	return got
}

// TestPropensityIsTheFrequency: for every picker, the propensity of a pick is its long-run share.
func TestPropensityIsTheFrequency(t *testing.T) {
	pickers := []Picker{MaxPicker{}, WeightedPicker{}, EpsilonPicker{Epsilon: 0.2}, EpsilonPicker{}, EpsilonPicker{Epsilon: 1}}
	keep := []bool{true, true, false, true, true}
	for _, p := range pickers {
		for _, score := range [][]float64{{1, 3, 9, 3, 0.5}, {0, 0, 0, 0, 0}, {2, 2, 2, 2, 2}, {0, 0, 9, 0, 1e-9}, {1e6, 0, 0, 0, 1e-6}} {
			frequencies(t, p, keep, score, 20_000)
		}
	}
}

// TestEqualScoresAreUniform is the tie of B40: 10,000 picks at equal score, within 5 %.
func TestEqualScoresAreUniform(t *testing.T) {
	keep := []bool{true, true, true, true}
	for _, p := range []Picker{MaxPicker{}, WeightedPicker{}, EpsilonPicker{Epsilon: 0.1}} {
		for i, f := range frequencies(t, p, keep, []float64{1, 1, 1, 1}, 10_000) {
			if f < 0.25*0.95 || f > 0.25*1.05 {
				t.Errorf("%s: endpoint %d has %.4f of the picks", p.Name(), i, f)
			}
		}
	}
}

func TestWeightZeroIsNeverDrawn(t *testing.T) {
	got := frequencies(t, WeightedPicker{}, []bool{true, true}, []float64{0, 100}, 1000)
	if got[0] != 0 {
		t.Errorf("a split of 0 to 100 gave %v", got)
	}
}

func TestSeedsDiffer(t *testing.T) {
	draw := func(seed uint64) (out [16]int) {
		q := &Query{Rand: rand.New(rand.NewPCG(seed, 0))}
		for i := range out {
			out[i], _ = MaxPicker{}.Pick(q, []bool{true, true, true, true}, make([]float64, 4))
		}
		return out
	}
	one, again, two := draw(1), draw(1), draw(2)
	if one != again {
		t.Error("equal seeds, different draws")
	}
	if one == two {
		t.Error("different seeds, equal draws")
	}
}

// TestChancesSumToOne for any scores and candidates.
func TestChancesSumToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "n")
		keep, score := make([]bool, n), make([]float64, n)
		for i := range keep {
			keep[i] = rapid.Bool().Draw(t, "keep")
			score[i] = rapid.OneOf(rapid.Float64Range(0, 1e6), rapid.Just(0.0), rapid.Just(1.0)).Draw(t, "score")
		}
		keep[rapid.IntRange(0, n-1).Draw(t, "kept")] = true
		for _, p := range []Drawer{WeightedPicker{}, EpsilonPicker{Epsilon: rapid.Float64Range(0, 1).Draw(t, "eps")}} {
			out, sum := make([]float32, n), 0.0
			p.Chances(keep, score, out)
			for i, c := range out {
				if c < 0 || !keep[i] && c != 0 {
					t.Fatalf("%s: chance %v of %d", p.Name(), c, i)
				}
				sum += float64(c)
			}
			if math.Abs(sum-1) > 1e-5 {
				t.Fatalf("%s: chances sum to %v", p.Name(), sum)
			}
		}
	})
}
