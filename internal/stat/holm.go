package stat

import (
	"math"
	"slices"
)

// Holm adjusts p-values of m tests for being looked at together (Holm 1979): with p sorted upwards,
// adjusted p_(i) = max_{j<=i} min(1, (m-j+1)·p_(j)). NaN stays NaN and is no test.
func Holm(p []float64) []float64 {
	out := slices.Clone(p)
	order := make([]int, 0, len(p))
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(p[a], p[b]) })
	worst := 0.0
	for k, i := range order {
		worst = max(worst, min(1, float64(len(order)-k)*p[i]))
		out[i] = worst
	}
	return out
}
