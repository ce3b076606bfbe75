package gbdt

import "slices"

// sample is a value with a weight.
type sample struct{ v, w float64 }

// quantile is the smallest value whose cumulative weight reaches q of the total. It reorders s.
func quantile(s []sample, q float64) float64 {
	slices.SortStableFunc(s, func(a, b sample) int {
		switch {
		case a.v < b.v:
			return -1
		case a.v > b.v:
			return 1
		}
		return 0
	})
	var total float64
	for _, x := range s {
		total += x.w
	}
	var sum float64
	for i, x := range s {
		sum += x.w
		if d := sum - q*total; d > 1e-12*total || i == len(s)-1 {
			return x.v
		} else if d > -1e-12*total {
			return (x.v + s[i+1].v) / 2
		}
	}
	return 0
}
