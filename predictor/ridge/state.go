package ridge

import (
	"fmt"
	"math"
)

// State is what a [Model] has learned, to be written down.
type State struct {
	Theta []float64 `json:"theta"`
	Cov   []float64 `json:"cov"` // lower triangle, row by row
	Seen  int       `json:"seen"`
}

// Bounds of a state that a model takes over.
const (
	maxTheta = 1e9
	maxCov   = 2 * maxTrace
	jitter   = 1e-3 // of the diagonal, by which rounding may have spoiled a covariance
)

// State returns a copy of what was learned.
func (m *Model) State() State {
	n := len(m.theta)
	s := State{Theta: append([]float64(nil), m.theta...), Cov: make([]float64, 0, n*(n+1)/2), Seen: m.seen}
	for i := range n {
		s.Cov = append(s.Cov, m.cov[i*n:i*n+i+1]...)
	}
	return s
}

// Restore makes the model know what a state says, under its own constants. The state must be one of
// as many coefficients, finite, and its covariance one; otherwise the model is unchanged.
func (m *Model) Restore(s State) error {
	n := len(m.theta)
	switch {
	case len(s.Theta) != n:
		return fmt.Errorf("theta: %d values, not %d", len(s.Theta), n)
	case len(s.Cov) != n*(n+1)/2:
		return fmt.Errorf("cov: %d values, not %d", len(s.Cov), n*(n+1)/2)
	case s.Seen < 0:
		return fmt.Errorf("seen: %d: negative", s.Seen)
	}
	for i, v := range s.Theta {
		if !(math.Abs(v) <= maxTheta) {
			return fmt.Errorf("theta[%d]: %v: not within %v of zero", i, v, maxTheta)
		}
	}
	cov := make([]float64, n*n)
	for i, k := 0, 0; i < n; i++ {
		for j := 0; j <= i; j, k = j+1, k+1 {
			v := s.Cov[k]
			if !(math.Abs(v) <= maxCov) || i == j && v < 0 {
				return fmt.Errorf("cov[%d,%d]: %v: no covariance", i, j, v)
			}
			cov[i*n+j], cov[j*n+i] = v, v
		}
	}
	if i, ok := semidefinite(cov, n); !ok {
		return fmt.Errorf("cov: not positive semidefinite at row %d", i)
	}
	copy(m.theta, s.Theta)
	copy(m.cov, cov)
	m.seen = s.Seen
	return nil
}

// semidefinite tries a Cholesky decomposition of a symmetric matrix with its diagonal raised a
// little, and returns the row at which it fails. Rows of zero are coefficients without freedom.
func semidefinite(a []float64, n int) (row int, ok bool) {
	l := make([]float64, n*n)
	for i := range n {
		for j := 0; j <= i; j++ {
			sum := a[i*n+j]
			if i == j {
				sum *= 1 + jitter
			}
			for k := range j {
				sum -= l[i*n+k] * l[j*n+k]
			}
			switch {
			case i == j && sum < 0:
				return i, false
			case i == j:
				l[i*n+i] = math.Sqrt(sum)
			case l[j*n+j] > 0:
				l[i*n+j] = sum / l[j*n+j]
			case sum != 0:
				return i, false
			}
		}
	}
	return 0, true
}
