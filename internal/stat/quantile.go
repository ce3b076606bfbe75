package stat

import (
	"math"
	"slices"
)

// Quantile is the q-quantile of ascending data, 0 <= q <= 1, by linear interpolation of the order
// statistics: with h = (n-1)q, x[⌊h⌋] + (h-⌊h⌋)(x[⌊h⌋+1]-x[⌊h⌋]). This is type 7 of Hyndman and Fan
// (1996), the default of R and numpy. gonum's stat.Quantile has other types only.
func Quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 || math.IsNaN(q) || q < 0 || q > 1 {
		return math.NaN()
	}
	h := float64(n-1) * q
	i := int(h)
	if i >= n-1 {
		return sorted[n-1]
	}
	lo, hi := sorted[i], sorted[i+1]
	if f := h - float64(i); f > 0 {
		return lo + f*(hi-lo)
	}
	return lo
}

// Quantiles are the q-quantiles of data in any order.
func Quantiles(x []float64, q ...float64) []float64 {
	sorted := ascending(x)
	out := make([]float64, len(q))
	for i, q := range q {
		out[i] = Quantile(sorted, q)
	}
	return out
}

// Median is the .5-quantile of data in any order.
func Median(x []float64) float64 { return Quantile(ascending(x), .5) }

// WeightedQuantile is the smallest x whose share of the total weight, counting itself and everything
// below it, is at least q. Data in any order; weights are finite and not negative.
func WeightedQuantile(x, w []float64, q float64) float64 {
	total := 0.0
	order := make([]int, 0, len(x))
	for i := range x {
		if math.IsNaN(x[i]) || math.IsNaN(w[i]) {
			return math.NaN()
		}
		if w[i] > 0 {
			order, total = append(order, i), total+w[i]
		}
	}
	if len(order) == 0 || math.IsNaN(q) || q < 0 || q > 1 {
		return math.NaN()
	}
	slices.SortFunc(order, func(a, b int) int { return compare(x[a], x[b]) })
	sum := 0.0
	for _, i := range order {
		if sum += w[i]; sum >= q*total*(1-1e-12) {
			return x[i]
		}
	}
	return x[order[len(order)-1]]
}

// ascending is a sorted copy; NaN anywhere makes all of it NaN, so that it cannot hide at one end.
func ascending(x []float64) []float64 {
	s := slices.Clone(x)
	if slices.ContainsFunc(s, math.IsNaN) {
		for i := range s {
			s[i] = math.NaN()
		}
		return s
	}
	slices.Sort(s)
	return s
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
