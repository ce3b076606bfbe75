package baseline

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/presage-router/presage/features"
)

// Linear is ridge regression on the standardised features, of the relative error: rows weigh
// 1/y^2. A feature that is not known has its mean.
type Linear struct {
	mean, scale [features.Dim]float64
	theta       []float64 // the constant last
	low, high   float64   // of the labels
}

const penalty = 1e-2 // per row

// Fit implements [Model], by the normal equations (X'WX + λI)θ = X'Wy.
func (l *Linear) Fit(rows []Row) error {
	if len(rows) == 0 {
		return fmt.Errorf("no rows")
	}
	l.standardise(rows)
	const d = int(features.Dim) + 1
	a, b := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	z := mat.NewVecDense(d, nil)
	l.low, l.high = math.Inf(1), 0
	for _, r := range rows {
		l.row(r.X, z)
		z.ScaleVec(1/r.Y, z)
		a.SymRankOne(a, 1, z)
		b.AddVec(b, z) // (x/y)*(y/y)
		l.low, l.high = min(l.low, r.Y), max(l.high, r.Y)
	}
	var trace float64
	for i := range d {
		trace += a.At(i, i)
	}
	for i := range d - 1 {
		a.SetSym(i, i, a.At(i, i)+penalty*trace/float64(d))
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return fmt.Errorf("linear model: %d rows leave the equations singular", len(rows))
	}
	theta := mat.NewVecDense(d, nil)
	if err := chol.SolveVecTo(theta, b); err != nil {
		return fmt.Errorf("linear model: %w", err)
	}
	l.theta = theta.RawVector().Data
	return nil
}

// Predict implements [Model]. Forecasts keep within ten times the labels.
func (l *Linear) Predict(x *features.Vector) float64 {
	z := mat.NewVecDense(len(l.theta), nil)
	l.row(x, z)
	y := mat.Dot(z, mat.NewVecDense(len(l.theta), l.theta))
	return bounded(min(max(y, l.low/10), l.high*10))
}

// row is the standardised features and the constant.
func (l *Linear) row(x *features.Vector, z *mat.VecDense) {
	for f, v := range x {
		s := 0.0
		if v == v && l.scale[f] > 0 {
			s = (float64(v) - l.mean[f]) / l.scale[f]
		}
		z.SetVec(f, s)
	}
	z.SetVec(int(features.Dim), 1)
}

func (l *Linear) standardise(rows []Row) {
	for f := range l.mean {
		var n, sum, squares float64
		for _, r := range rows {
			if v := float64(r.X[f]); v == v {
				n++
				sum += v
				squares += v * v
			}
		}
		l.mean[f], l.scale[f] = 0, 0
		if n > 0 {
			l.mean[f] = sum / n
			l.scale[f] = math.Sqrt(max(0, squares/n-l.mean[f]*l.mean[f]))
		}
	}
}

var _ Model = (*Linear)(nil)
