package baseline

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/presage-router/presage/features"
)

// rowsOf makes n rows with two known features, prompt and pending, and all others unknown.
func rowsOf(n int, y func(prompt, pending float64) float64) []Row {
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]Row, n)
	for i := range rows {
		x := new(features.Vector)
		for f := range x {
			x[f] = float32(math.NaN())
		}
		x[features.Prompt] = float32(math.Floor(4000 * rng.Float64()))
		x[features.Pending] = float32(rng.IntN(8))
		rows[i] = Row{x, y(float64(x[features.Prompt]), float64(x[features.Pending]))}
	}
	return rows
}

// errorOf is the mean relative error on rows that were not fitted.
func errorOf(t *testing.T, m Model, rows []Row) float64 {
	t.Helper()
	k := len(rows) / 2
	if err := m.Fit(rows[:k]); err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, r := range rows[k:] {
		sum += math.Abs(m.Predict(r.X)-r.Y) / r.Y
	}
	return sum / float64(len(rows)-k)
}

// Each model is right about what its form can express.
func TestModels(t *testing.T) {
	line := func(prompt, pending float64) float64 { return .01 + 5e-5*prompt + .03*pending }
	step := func(prompt, pending float64) float64 {
		if prompt < 1000 {
			return .02
		}
		if pending < 4 {
			return .3
		}
		return 2
	}
	for _, c := range []struct {
		name  string
		model Model
		law   func(prompt, pending float64) float64
		most  float64
	}{
		{"linear", new(Linear), line, .03},
		{"tree", new(Tree), step, .01},
		{"boosted", new(Boosted), step, .06},
		{"boosted on a line", new(Boosted), line, .05},
	} {
		if e := errorOf(t, c.model, rowsOf(1200, c.law)); !(e <= c.most) {
			t.Errorf("%s: mean error %.4f, want at most %v", c.name, e, c.most)
		}
	}
}

// The linear model is weighted least squares: it agrees with the closed form in one feature.
func TestLinearFollowsNormalEquations(t *testing.T) {
	rows := rowsOf(300, func(prompt, _ float64) float64 { return .05 + 1e-8*prompt*prompt })
	for i := range rows {
		rows[i].X[features.Pending] = float32(math.NaN())
	}
	var w, x, y, xx, xy float64 // sums weighted by 1/y^2
	for _, r := range rows {
		k, p := 1/(r.Y*r.Y), float64(r.X[features.Prompt])
		w, x, y, xx, xy = w+k, x+k*p, y+k*r.Y, xx+k*p*p, xy+k*p*r.Y
	}
	slope := (w*xy - x*y) / (w*xx - x*x)
	at := func(p float64) float64 { return (y-slope*x)/w + slope*p }
	var l Linear
	if err := l.Fit(rows); err != nil {
		t.Fatal(err)
	}
	for _, p := range []float32{0, 500, 4000} {
		v := *rows[0].X
		v[features.Prompt] = p
		if got, want := l.Predict(&v), at(float64(p)); math.Abs(got-want) > .02*want {
			t.Errorf("at %v tokens: %v, want %v", p, got, want)
		}
	}
}

// Forecasts are positive and finite whatever the rows and the request.
func TestBounds(t *testing.T) {
	for name, m := range All() {
		for _, rows := range [][]Row{
			rowsOf(1, func(_, _ float64) float64 { return 1e-9 }),
			rowsOf(60, func(_, _ float64) float64 { return 3 }),
			rowsOf(60, func(prompt, _ float64) float64 { return 1e-6 + 1e4*prompt }),
		} {
			if err := m.Fit(rows); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var far, blank features.Vector
			for f := range far {
				far[f], blank[f] = math.MaxFloat32, float32(math.NaN())
			}
			for _, x := range []*features.Vector{&far, &blank, new(features.Vector), rows[0].X} {
				if y := m.Predict(x); !(y > 0) || math.IsInf(y, 0) {
					t.Errorf("%s, %d rows: forecast %v", name, len(rows), y)
				}
			}
		}
	}
	if err := new(Linear).Fit(nil); err == nil {
		t.Error("linear model of no rows")
	}
}

// A feature that is not known tells something too: the tree can split on it.
func TestTreeSplitsOnUnknown(t *testing.T) {
	rows := rowsOf(400, func(_, _ float64) float64 { return 1 })
	for i := range rows {
		if i%3 == 0 {
			rows[i].X[features.Pending], rows[i].Y = float32(math.NaN()), 5
		}
	}
	if e := errorOf(t, new(Tree), rows); e > 1e-6 {
		t.Errorf("mean error %v", e)
	}
}
