package adaptive

import (
	"fmt"
	"math"
)

// Curve maps what the active detectors add up to, x, to the share of the weight budget that goes to
// distribution: Low + (High-Low) / (1 + exp(-Slope*(x-Centre)))^(1/Skew), Richards' generalised
// logistic. It rises with x; x = 0, nothing detected, is the share at rest.
type Curve struct {
	Low, High float64 // shares never left, 0 < Low < High < 1
	Slope     float64 // above 0
	Centre    float64
	Skew      float64 // above 0; 1 is the plain sigmoid
}

// Share is the curve at x; what is not a number is rest.
func (c *Curve) Share(x float64) float64 {
	if math.IsNaN(x) {
		x = 0
	}
	return min(c.Low+(c.High-c.Low)*math.Pow(1+math.Exp(-c.Slope*(x-c.Centre)), -1/c.Skew), c.High)
}

func (c *Curve) check() error {
	switch {
	case !(c.Low > 0 && c.Low < c.High && c.High < 1): //nolint:staticcheck // NaN must fail too
		return fmt.Errorf("curve: shares from %v to %v: not rising within 0 and 1", c.Low, c.High)
	case !(c.Slope > 0 && c.Slope <= 1e3): //nolint:staticcheck // NaN must fail too
		return fmt.Errorf("curve: slope %v: not within 0 and 1000", c.Slope)
	case !(c.Skew >= 0.01 && c.Skew <= 100): //nolint:staticcheck // NaN must fail too
		return fmt.Errorf("curve: skew %v: not within 0.01 and 100", c.Skew)
	case !(math.Abs(c.Centre) <= 100): //nolint:staticcheck // NaN must fail too
		return fmt.Errorf("curve: centre %v: not within -100 and 100", c.Centre)
	}
	return nil
}
