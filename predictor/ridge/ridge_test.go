package ridge

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func must(t testing.TB, mean, sd []float64, p Params) *Model {
	t.Helper()
	m, err := New(mean, sd, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEqualsBatchLeastSquares: with a fixed scale, no clipping and no forgetting the recursion is
// ridge regression, solved here in one piece.
func TestEqualsBatchLeastSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		const n, rows, noise, scale = 4, 30, 0.05, 1e3
		mean, sd := make([]float64, n), make([]float64, n)
		for i := range n {
			mean[i], sd[i] = rng.NormFloat64(), 0.5+rng.Float64()
		}
		m, err := New(mean, sd, Params{Forget: 1, Noise: noise, Clip: 1e9, Floor: scale})
		if err != nil {
			t.Fatal(err)
		}
		x, y := mat.NewDense(rows, n, nil), mat.NewVecDense(rows, nil)
		for r := range rows {
			row := make([]float64, n)
			for i := range row {
				row[i] = rng.Float64() * 10
			}
			target := 1 + rng.Float64()*100
			if !m.Learn(row, target) {
				t.Fatal("refused")
			}
			x.SetRow(r, row)
			y.SetVec(r, target)
		}
		// Normal equations of the posterior: (P + X'X/(noise s^2)) theta = P mean + X'y/(noise s^2).
		var a mat.Dense
		a.Mul(x.T(), x)
		a.Scale(1/(noise*scale*scale), &a)
		var b mat.VecDense
		b.MulVec(x.T(), y)
		b.ScaleVec(1/(noise*scale*scale), &b)
		for i := range n {
			p := 1 / (sd[i] * sd[i])
			a.Set(i, i, a.At(i, i)+p)
			b.SetVec(i, b.AtVec(i)+p*mean[i])
		}
		var want mat.VecDense
		if err := want.SolveVec(&a, &b); err != nil {
			t.Fatal(err)
		}
		for i, got := range m.Theta() {
			if math.Abs(got-want.AtVec(i)) > 1e-6*(1+math.Abs(got)) {
				t.Fatalf("theta[%d] = %v, batch %v", i, got, want.AtVec(i))
			}
		}
	})
}

func TestLearnsRelativeErrorAndForgets(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	m := must(t, []float64{10, 10}, []float64{50, 50}, Params{Forget: .99, Noise: .02, Clip: .4, Floor: 1})
	learn := func(a, b float64, n int) {
		for range n {
			x := []float64{1, math.Exp(4 * rng.Float64())}
			m.Learn(x, (a+b*x[1])*math.Exp(.1*rng.NormFloat64()))
		}
	}
	check := func(a, b float64) {
		t.Helper()
		for _, v := range []float64{1, 10, 50} {
			want := a + b*v
			if got := m.Predict([]float64{1, v}); math.Abs(got/want-1) > .1 {
				t.Errorf("at %v: %v, want %v", v, got, want)
			}
		}
	}
	learn(20, 3, 500)
	check(20, 3)
	learn(60, 9, 500) // everything three times slower
	check(60, 9)
	if v := m.Variance([]float64{1, 10}); !(v > 0 && v < .01) {
		t.Errorf("variance %v", v)
	}
}

// TestStaysFiniteAndSymmetric: whatever is learned, in whatever scale, the state stays usable.
func TestStaysFiniteAndSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		const n = 5
		m, err := New(make([]float64, n), []float64{10, 1, 100, 0, 3}, Params{Forget: .95, Noise: .02, Clip: .4, Floor: .01})
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			x := make([]float64, n)
			for i := range x {
				if rng.IntN(3) > 0 {
					x[i] = math.Exp(12*rng.Float64() - 6)
				}
			}
			m.Learn(x, math.Exp(20*rng.Float64()-10))
		}
		for i := range n {
			if math.IsNaN(m.theta[i]) || math.IsInf(m.theta[i], 0) || m.cov[i*n+i] < 0 {
				t.Fatalf("theta %v, cov %v", m.theta, m.cov)
			}
			for j := range i {
				if m.cov[i*n+j] != m.cov[j*n+i] {
					t.Fatal("covariance is not symmetric")
				}
			}
		}
		if m.theta[3] != 0 {
			t.Fatalf("a coefficient without freedom moved to %v", m.theta[3])
		}
	})
}

func TestRefusesBadObservations(t *testing.T) {
	m := must(t, []float64{1, 2}, []float64{1, 1}, Params{Forget: 1, Noise: .1, Clip: 1, Floor: 1})
	for _, c := range []struct {
		x []float64
		y float64
	}{
		{[]float64{1, 1}, 0}, {[]float64{1, 1}, -1}, {[]float64{1, 1}, math.NaN()}, {[]float64{1, 1}, math.Inf(1)},
		{[]float64{1, math.NaN()}, 1}, {[]float64{math.Inf(-1), 1}, 1}, {[]float64{1}, 1},
	} {
		if m.Learn(c.x, c.y) {
			t.Errorf("learned %+v", c)
		}
	}
	if m.Seen() != 0 || m.Theta()[0] != 1 || m.Theta()[1] != 2 {
		t.Errorf("refused observations changed the model: %v", m.Theta())
	}
	for _, p := range []Params{{}, {Forget: 2, Noise: 1, Clip: 1, Floor: 1}, {Forget: 1, Noise: 0, Clip: 1, Floor: 1}, {Forget: 1, Noise: 1, Clip: math.NaN(), Floor: 1}} {
		if _, err := New([]float64{1}, []float64{1}, p); err == nil {
			t.Errorf("accepted %+v", p)
		}
	}
	if _, err := New([]float64{1}, []float64{math.NaN()}, Params{Forget: 1, Noise: 1, Clip: 1, Floor: 1}); err == nil {
		t.Error("accepted a deviation that is no number")
	}
}

func BenchmarkLearn(b *testing.B) {
	n := 15
	mean, sd, x := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		mean[i], sd[i], x[i] = 1, 1, float64(i)
	}
	m := must(b, mean, sd, Params{Forget: .99, Noise: .02, Clip: .4, Floor: 1})
	b.ReportAllocs()
	for b.Loop() {
		m.Learn(x, 50)
	}
}
