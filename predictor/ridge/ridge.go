// Package ridge is Bayesian recursive least squares on relative error: a linear forecast of a
// positive quantity that learns one observation at a time and knows how sure it is.
//
// The model is y = x.theta + e with e proportional to the forecast, so rows and targets are divided
// by the forecast before the usual update (Haykin, "Adaptive Filter Theory", ch. 10; weighted least
// squares with weights 1/y^2). Old evidence fades exponentially. The prior is a normal distribution
// per coefficient: with no evidence the forecast is the prior's.
package ridge

import (
	"fmt"
	"math"
)

// Params are the constants of the recursion.
type Params struct {
	Forget float64 // weight of old evidence per observation, (0,1]
	Noise  float64 // variance of the relative error of one observation, as 0.02
	Clip   float64 // largest relative error that one observation may teach, as 0.4 (Huber)
	Floor  float64 // forecasts below it are scaled as if they were it; unit of y, positive
}

// maxTrace bounds the covariance, so that fading evidence in one direction never blows it up.
const maxTrace = 1e6

// Model is the state of one recursion. It is not safe for concurrent use.
type Model struct {
	p     Params
	theta []float64
	cov   []float64 // row-major, symmetric
	gain  []float64 // scratch
	seen  int

	hasty  int     // observations under another forgetting
	forget float64 // which
}

// New returns a model with a prior: mean and standard deviation per coefficient.
func New(mean, sd []float64, p Params) (*Model, error) {
	n := len(mean)
	if n == 0 || len(sd) != n {
		return nil, fmt.Errorf("%d means and %d deviations", n, len(sd))
	}
	if !(p.Forget > 0 && p.Forget <= 1) || !(p.Noise > 0) || !(p.Clip > 0) || !(p.Floor > 0) {
		return nil, fmt.Errorf("constants %+v must be positive, forget at most 1", p)
	}
	m := &Model{p: p, theta: make([]float64, n), cov: make([]float64, n*n), gain: make([]float64, n)}
	for i := range n {
		if math.IsNaN(mean[i]) || math.IsInf(mean[i], 0) || !(sd[i] >= 0) || math.IsInf(sd[i], 0) {
			return nil, fmt.Errorf("coefficient %d: mean %v, deviation %v", i, mean[i], sd[i])
		}
		m.theta[i] = mean[i]
		m.cov[i*n+i] = sd[i] * sd[i]
	}
	return m, nil
}

// Dim returns the number of coefficients.
func (m *Model) Dim() int { return len(m.theta) }

// Seen returns how many observations were learned.
func (m *Model) Seen() int { return m.seen }

// Theta returns the coefficients; they belong to the model.
func (m *Model) Theta() []float64 { return m.theta }

// Predict returns x.theta, which may be of any sign: the caller floors it.
func (m *Model) Predict(x []float64) float64 { return Dot(x, m.theta) }

// Variance returns the variance of the forecast relative to its square, from what is not yet known
// of the coefficients.
func (m *Model) Variance(x []float64) float64 {
	s := max(m.Predict(x), m.p.Floor)
	n := len(m.theta)
	var sum float64
	for i := range n {
		sum += x[i] * Dot(m.cov[i*n:(i+1)*n], x)
	}
	return sum / (s * s)
}

// Learn takes one observation. Rows and targets that are not finite, and targets that are not
// positive, are refused and change nothing.
func (m *Model) Learn(x []float64, y float64) bool {
	n := len(m.theta)
	if len(x) != n || !(y > 0) || math.IsInf(y, 0) {
		return false
	}
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	fore := Dot(x, m.theta)
	s := max(fore, m.p.Floor)
	e := min(max((y-fore)/s, -m.p.Clip), m.p.Clip)
	denom := m.p.Noise
	for i := range n { // gain = C x / s, before division
		m.gain[i] = Dot(m.cov[i*n:(i+1)*n], x) / s
		denom += m.gain[i] * x[i] / s
	}
	forget := m.p.Forget
	if m.hasty > 0 {
		forget = m.forget
		m.hasty--
	}
	var trace float64
	for i := range n {
		gi := m.gain[i] / denom
		m.theta[i] += gi * e
		row := m.cov[i*n : (i+1)*n]
		for j := range i + 1 {
			v := (row[j] - gi*m.gain[j]) / forget
			row[j], m.cov[j*n+i] = v, v
		}
		row[i] = max(row[i], 0)
		trace += row[i]
	}
	if trace > maxTrace {
		k := maxTrace / trace
		for i := range m.cov {
			m.cov[i] *= k
		}
	}
	m.seen++
	return true
}

// Loosen multiplies the covariance, after a change was detected: what was learned counts for less.
func (m *Model) Loosen(factor float64) {
	for i := range m.cov {
		m.cov[i] *= factor
	}
}

// Scale multiplies all coefficients, and how far they may be off, by a positive factor.
func (m *Model) Scale(factor float64) {
	for i := range m.theta {
		m.theta[i] *= factor
	}
	m.Loosen(factor * factor)
}

// Hasten gives old evidence another weight per observation for the next n ones.
func (m *Model) Hasten(forget float64, n int) {
	if forget > 0 && forget <= 1 {
		m.forget, m.hasty = forget, n
	}
}

// Dot is the scalar product of a with the first len(a) values of b.
func Dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s float64
	for i, v := range a {
		s += v * b[i]
	}
	return s
}
