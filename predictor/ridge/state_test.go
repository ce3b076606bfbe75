package ridge

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestStateGoesOn: a model restored from a state goes on as the one it was taken from, whatever that
// one learned.
func TestStateGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		const n = 5
		p := Params{Forget: .95, Noise: .02, Clip: .4, Floor: .01}
		a, _ := New(make([]float64, n), []float64{10, 1, 100, 0, 3}, p)
		b, _ := New(make([]float64, n), make([]float64, n), p)
		learn := func(rows int, models ...*Model) {
			for range rows {
				x := make([]float64, n)
				for i := range x {
					if rng.IntN(3) > 0 {
						x[i] = math.Exp(12*rng.Float64() - 6)
					}
				}
				y := math.Exp(20*rng.Float64() - 10)
				for _, m := range models {
					m.Learn(x, y)
				}
			}
		}
		learn(rng.IntN(2000), a)
		if err := b.Restore(a.State()); err != nil {
			t.Fatal(err)
		}
		learn(200, a, b)
		if diff := cmp.Diff(a.State(), b.State()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestRestoreRefuses(t *testing.T) {
	p := Params{Forget: 1, Noise: .1, Clip: 1, Floor: 1}
	m := must(t, []float64{1, 2}, []float64{1, 1}, p)
	good := m.State()
	for want, s := range map[string]State{
		"theta: 1 values":     {Theta: []float64{1}, Cov: good.Cov},
		"cov: 2 values":       {Theta: good.Theta, Cov: []float64{1, 1}},
		"theta[1]: NaN":       {Theta: []float64{1, math.NaN()}, Cov: good.Cov},
		"cov[1,0]: +Inf":      {Theta: good.Theta, Cov: []float64{1, math.Inf(1), 1}},
		"cov[0,0]: -1":        {Theta: good.Theta, Cov: []float64{-1, 0, 1}},
		"semidefinite at row": {Theta: good.Theta, Cov: []float64{1, 2, 1}},
		"at row 1":            {Theta: good.Theta, Cov: []float64{0, 1, 1}},
		"seen: -1":            {Theta: good.Theta, Cov: good.Cov, Seen: -1},
	} {
		if err := m.Restore(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if diff := cmp.Diff(good, m.State()); diff != "" {
		t.Error("a refused state changed the model:", diff)
	}
}
