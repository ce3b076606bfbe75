package compare

import (
	"math"
	"strings"

	"github.com/presage-router/presage/internal/stat"
)

// section sums up one load over the seeds given, of which every run was made.
func section(runs *Runs, policies []string, load float64, seeds []uint64) Section {
	s := Section{Load: load, Policies: map[string]*Standing{}, Paired: []Comparison{}}
	results := make([][]*Result, len(policies))
	var offered []float64
	for p, name := range policies {
		for _, seed := range seeds {
			r := runs.Result(name, load, seed)
			results[p] = append(results[p], r)
			offered = append(offered, r.Offered)
		}
		s.Policies[name] = standing(name, results[p])
		for k, r := range results[p] {
			if r.Answered != results[0][k].Answered {
				s.Policies[name].Unequal = true
			}
		}
	}
	s.Offered = stat.Mean(offered)
	if len(seeds) == 0 {
		s.Offered = 0
		return s
	}
	s.ByClass = byClass(policies, results, load)
	for _, m := range Measures() {
		for _, other := range policies[1:] {
			a, b := s.Policies[policies[0]], s.Policies[other]
			c := differ(a.Values[m.Name], b.Values[m.Name], m.Good)
			if c.Seeds == 0 {
				continue
			}
			c.A, c.B, c.Metric, c.Load = policies[0], other, m.Name, load
			s.Paired = append(s.Paired, c)
		}
	}
	return s
}

// standing sums up the runs of one policy.
func standing(policy string, results []*Result) *Standing {
	s := &Standing{Policy: policy, Mean: map[string]float64{}, CI95: map[string]Interval{}, Values: map[string][]float64{}}
	for _, m := range Measures() {
		var known []float64
		for _, r := range results {
			v := m.Of(r)
			s.Values[m.Name] = append(s.Values[m.Name], v)
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				known = append(known, v)
			}
		}
		if len(known) == 0 {
			continue
		}
		s.Mean[m.Name] = stat.Mean(known)
		if len(known) > 1 && (len(known) >= SeedsForP99 || !strings.Contains(m.Name, "p99")) {
			i := stat.MeanInterval(known, level)
			s.CI95[m.Name] = Interval{i.Low, i.High}
		}
	}
	s.Classes = classes(results)
	return s
}

// classes are the means over seeds of what each SLO class attained; nil for one class.
func classes(results []*Result) map[string]Class {
	sum := map[string]Class{}
	seeds := map[string]int{}
	for _, r := range results {
		for name, c := range r.Classes {
			sum[name] = Class{Requests: sum[name].Requests + c.Requests, Attainment: sum[name].Attainment + c.Attainment}
			seeds[name]++
		}
	}
	if len(sum) < 2 {
		return nil
	}
	for name, c := range sum {
		sum[name] = Class{Requests: c.Requests, Attainment: c.Attainment / float64(seeds[name])}
	}
	return sum
}
