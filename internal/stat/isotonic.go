package stat

// Falling is the least-squares fit to y, with weights w (nil: equal), among sequences that never rise:
// pool adjacent violators (Barlow et al. 1972). Weights are above 0.
func Falling(y, w []float64) []float64 {
	neg := make([]float64, len(y))
	for i, v := range y {
		neg[i] = -v
	}
	fit := Rising(neg, w)
	for i := range fit {
		fit[i] = -fit[i]
	}
	return fit
}

// Rising is the least-squares fit to y among sequences that never fall; see [Falling].
func Rising(y, w []float64) []float64 {
	type pool struct {
		mean, weight float64
		n            int
	}
	var pools []pool
	for i, v := range y {
		p := pool{v, 1, 1}
		if w != nil {
			p.weight = w[i]
		}
		for len(pools) > 0 && pools[len(pools)-1].mean >= p.mean {
			last := pools[len(pools)-1]
			pools = pools[:len(pools)-1]
			total := last.weight + p.weight
			p = pool{(last.mean*last.weight + p.mean*p.weight) / total, total, last.n + p.n}
		}
		pools = append(pools, p)
	}
	fit := make([]float64, 0, len(y))
	for _, p := range pools {
		for range p.n {
			fit = append(fit, p.mean)
		}
	}
	return fit
}

// Crossing is where the line through the points (x[i], y[i]), x ascending, first falls below level,
// by linear interpolation. The second result is false where it does not: then x is the last one if
// the line stays at or above level, and the first one if it begins below.
func Crossing(x, y []float64, level float64) (float64, bool) {
	switch {
	case len(x) == 0:
		return 0, false
	case y[0] < level:
		return x[0], false
	}
	for i := 1; i < len(x); i++ {
		if y[i] < level {
			return x[i-1] + (x[i]-x[i-1])*(y[i-1]-level)/(y[i-1]-y[i]), true
		}
	}
	return x[len(x)-1], false
}
