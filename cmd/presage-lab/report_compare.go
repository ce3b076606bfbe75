package main

import (
	"math"
	"slices"

	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/report"
)

// comparisonOf is what one scenario showed, as reports have it.
func comparisonOf(m *compare.Match, o *compare.Outcome) *report.Comparison {
	out := &report.Comparison{
		Scope:   report.Scope{Scenario: o.Scenario, Endpoints: endpoints(m.Arena), Seeds: o.Seeds, Planned: o.Planned, Done: o.Done},
		Ours:    o.Order[0],
		Primary: report.Attainment,
		Method:  method(o.SeedList),
	}
	if !o.Partial {
		out.Scope.Planned = o.Done // searches for knees take fewer runs than was guessed, or more
	}
	out.Method.Hashes = hashes(m.Arena, o.Load, m.Seeds[0])
	out.Method.Notes = notes(o)
	if o.Seeds == 0 {
		return out
	}
	// A sustained load is a multiple of the scenario's rate: in requests per second it is that of the headline load.
	perLoad := o.Offered / o.Load
	if o.Knees != nil {
		out.Primary = report.SustainedRate
	}
	for _, p := range o.Order {
		out.Policies = append(out.Policies, policyOf(o, p, perLoad))
		out.Curves = append(out.Curves, curveOf(o, p))
	}
	for i := range o.Primary {
		c := &o.Primary[i]
		v := report.Versus{Other: c.B, Primary: primaryOf(o, c, perLoad)}
		v.Others = effectsOf(o, c.B)
		out.Versus = append(out.Versus, v)
	}
	out.Classes = classesOf(o)
	if o.Control != nil {
		out.Control = controlOf(o.Control)
	}
	if o.NoKnee != "" {
		out.Refusals = append(out.Refusals, "Refused: a sustained rate: "+o.NoKnee+".")
	}
	out.Scope.Requests = requests(o)
	return out
}

// classesOf are the differences by SLO class at the headline load.
func classesOf(o *compare.Outcome) []report.Slice {
	var out []report.Slice
	for i := range o.ByClass {
		c := &o.ByClass[i]
		d := differenceOf(&c.Comparison, 100, o.Policies[c.B].Classes[c.Class].Attainment)
		out = append(out, report.Slice{By: "SLO class", Name: c.Class, Other: c.B, Difference: d, Requests: c.Requests})
	}
	return out
}

// notes are the remarks of a comparison that the report does not make itself.
func notes(o *compare.Outcome) []string {
	out := []string{"Refused and unfinished requests count as missed."}
	if o.Knees != nil {
		out = append(out, "Sustained rates by bisection, seed by seed: where the isotonic fit of attainment first crosses 90\u202f%.")
	}
	for i := range o.Sweep {
		for _, p := range o.Order {
			if s := o.Sweep[i].Policies[p]; s != nil && s.Unequal {
				return append(out, "Policies answered different numbers of requests: their TTFT, ITL and E2E are those of different requests.")
			}
		}
	}
	return out
}

func requests(o *compare.Outcome) int {
	seconds := (o.Duration - o.Warmup).Seconds()
	n := 0.0
	for i := range o.Sweep {
		n += o.Sweep[i].Offered * seconds * float64(o.Seeds*len(o.Order))
	}
	return int(math.Round(n))
}

func policyOf(o *compare.Outcome, name string, perLoad float64) report.Policy {
	s := o.Policies[name]
	p := report.Policy{
		Name: name, Sustained: report.Point(math.NaN()), Tuning: tuningOf(name), Rate: report.Value(o.Offered),
		Attained: orUnknown(s.Mean, compare.PrimaryMetric, 1), TTFT90: orUnknown(s.Mean, "ttft_p90_ms", 1e-3), ITL: orUnknown(s.Mean, "itl_mean_ms", 1e-3),
		Cached: orUnknown(s.Mean, "hit_ratio", 1), LoadCV: orUnknown(s.Mean, "load_cv", 1),
	}
	k := o.Knees[name]
	if k == nil {
		return p
	}
	p.Sustained = report.Interval{Mean: report.Value(k.Load * perLoad), Low: report.Value(k.CI95[0] * perLoad), High: report.Value(k.CI95[1] * perLoad)}
	p.Knee = report.Knee{Searched: true, Reached: k.Unreached == 0}
	for _, s := range k.PerSeed {
		p.Knee.Gap = max(p.Knee.Gap, report.Value(s.Gap))
	}
	return p
}

// curveOf has the loads that every seed played: those asked for, and those that the searches had in common.
func curveOf(o *compare.Outcome, name string) report.Curve {
	type sum struct {
		offered, goodput float64
		n                int
	}
	at := map[float64]sum{}
	var loads []float64
	add := func(load, offered, goodput float64) {
		s := at[load]
		if s.n == 0 {
			loads = append(loads, load)
		}
		at[load] = sum{s.offered + offered, s.goodput + goodput, s.n + 1}
	}
	if k := o.Knees[name]; k != nil {
		for _, s := range k.PerSeed {
			for _, p := range s.Points {
				add(p.Load, p.Offered, p.Goodput)
			}
		}
	} else {
		for i := range o.Sweep {
			for range o.Seeds {
				add(o.Sweep[i].Load, o.Sweep[i].Offered, o.Sweep[i].Policies[name].Mean["goodput_rps"])
			}
		}
	}
	slices.Sort(loads)
	c := report.Curve{Policy: name}
	for _, l := range loads {
		if s := at[l]; s.n == o.Seeds {
			n := float64(s.n)
			c.Points = append(c.Points, report.Rate{Offered: report.Value(s.offered / n), Goodput: report.Value(s.goodput / n)})
		}
	}
	return c
}

// primaryOf is the comparison that the verdict goes by.
func primaryOf(o *compare.Outcome, c *compare.Comparison, perLoad float64) report.Difference {
	if o.Knees == nil {
		return differenceOf(c, 100, orMean(o.Policies[c.B], c.Metric))
	}
	d := differenceOf(c, perLoad, o.Knees[c.B].Load)
	if r := c.RelativeCI95; !math.IsNaN(r[0]) {
		d.Relative = &report.Interval{Mean: report.Value(c.Relative), Low: report.Value(r[0]), High: report.Value(r[1])}
	}
	return d
}

func orMean(s *compare.Standing, metric string) float64 {
	if v, ok := s.Mean[metric]; ok {
		return v
	}
	return math.NaN()
}

// differenceOf is a paired difference in another unit; base is the other policy's mean, unscaled.
func differenceOf(c *compare.Comparison, scale, base float64) report.Difference {
	at := func(i compare.Interval) report.Interval {
		return report.Interval{Mean: report.Value(scale * c.Diff), Low: report.Value(scale * i[0]), High: report.Value(scale * i[1])}
	}
	d := report.Difference{Interval: at(c.CI95), Base: report.Value(scale * base), SD: report.Unknown(), Seeds: values(c.Values, scale), N: c.Seeds, P: report.Unknown()}
	if c.Seeds > 1 {
		all := at(c.CIAll)
		d.SD, d.P, d.All = report.Value(scale*c.SD), report.Value(c.Holm), &all
	}
	return d
}

// effects are the metrics beside the primary one, and how they are called and measured here.
var effects = []struct {
	metric report.Metric
	name   string
	scale  float64
	rest   bool // what is missing of 1
}{
	{report.TTFT90, "ttft_p90_ms", 1e-3, false}, {report.TTFT99, "ttft_p99_ms", 1e-3, false}, {report.ITLMean, "itl_mean_ms", 1e-3, false},
	{report.E2EMean, "e2e_mean_ms", 1e-3, false}, {report.Errors, "answered_ratio", -1, true}, {report.Fairness, "fairness", 1, false},
	{report.Cached, "hit_ratio", 1, false}, {report.Goodput, "goodput_rps", 1, false},
}

func effectsOf(o *compare.Outcome, other string) []report.Effect {
	var out []report.Effect
	for _, e := range effects {
		for i := range o.Paired {
			c := &o.Paired[i]
			if c.B != other || c.Metric != e.name {
				continue
			}
			base := orMean(o.Policies[other], e.name)
			if e.rest {
				base-- // scaled by -1: what is missing
			}
			d := differenceOf(c, e.scale, base)
			if e.scale < 0 {
				d.Low, d.High, d.SD, d.All = d.High, d.Low, -d.SD, nil
			}
			out = append(out, report.Effect{Metric: e.metric, Difference: d})
		}
	}
	return out
}
