package priors

import "math"

// system is a weighted least-squares problem in relative error with coefficients that are not
// negative.
type system struct {
	rows    [][]float64 // divided by y
	weights []float64
}

// add takes an observation: y is about x times the coefficients.
func (s *system) add(weight, y float64, x ...float64) {
	row := make([]float64, len(x))
	for i, v := range x {
		row[i] = v / y
	}
	s.rows, s.weights = append(s.rows, row), append(s.weights, weight)
}

// balanced solves the problem again and again with more weight on what was off most, which leads
// from the least mean square to the least largest error (Lawson's algorithm, damped), and stops half
// way between.
func (s *system) balanced() []float64 {
	const rounds, zeal = 40, 1.0
	w := append([]float64(nil), s.weights...)
	x := s.solve(w)
	for range rounds {
		for i, row := range s.rows {
			w[i] *= 1 + zeal*s.weights[i]*math.Abs(dot(row, x)-1)
		}
		x = s.solve(w)
	}
	return x
}

// solve is coordinate descent on the normal equations.
func (s *system) solve(w []float64) []float64 {
	const sweeps = 2000
	n := len(s.rows[0])
	a, b := make([]float64, n*n), make([]float64, n)
	for r, row := range s.rows {
		for i := range n {
			for j := range n {
				a[i*n+j] += w[r] * row[i] * row[j]
			}
			b[i] += w[r] * row[i]
		}
	}
	x := make([]float64, n)
	for range sweeps {
		for i := range x {
			x[i] = max(0, x[i]+(b[i]-dot(a[i*n:i*n+n], x))/a[i*n+i])
		}
	}
	return x
}

func dot(a, b []float64) float64 {
	var sum float64
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
