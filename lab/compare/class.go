package compare

import (
	"maps"
	"math"
	"slices"
)

// ByClass is the first policy minus another one in what one SLO class attained, as a share.
type ByClass struct {
	Class    string `json:"class"`
	Requests int    `json:"requests"` // of the first policy in the class, over the seeds
	Comparison
}

// byClass compares the first policy with each other one, class by class; nil for one class.
func byClass(policies []string, results [][]*Result, load float64) []ByClass {
	seen := map[string]int{}
	for _, r := range results[0] {
		for name, c := range r.Classes {
			seen[name] += c.Requests
		}
	}
	if len(seen) < 2 {
		return nil
	}
	var out []ByClass
	for p, other := range policies[1:] {
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			c := differ(attained(results[0], name), attained(results[p+1], name), 1)
			c.A, c.B, c.Metric, c.Load = policies[0], other, PrimaryMetric, load
			out = append(out, ByClass{Class: name, Requests: seen[name], Comparison: c})
		}
	}
	return out
}

// attained is what a class attained, by seed; NaN where it had no request.
func attained(results []*Result, class string) []float64 {
	v := make([]float64, 0, len(results))
	for _, r := range results {
		c, ok := r.Classes[class]
		if !ok || c.Requests == 0 {
			v = append(v, math.NaN())
			continue
		}
		v = append(v, c.Attainment)
	}
	return v
}
