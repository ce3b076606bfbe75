package ab

import (
	"slices"

	"github.com/presage-router/presage/lab/report"
)

// Comparison is what an HTML report of the i-th arm against the control is made of. The method's
// command and version are the caller's; what an interval costs is filled in.
func (r *Result) Comparison(i int, m report.Method) *report.Comparison {
	v := &r.versus[i]
	name := r.names[v.arm]
	c := &report.Comparison{
		Scope: report.Scope{Scenario: "live traffic", Requests: r.Requests, Blocks: len(r.calendar)},
		Ours:  name, Against: r.Control, Primary: report.Attainment, Method: m,
		Versus: []report.Versus{r.difference(name)},
		Live: &report.Live{
			Unit: r.Unit, Calendar: r.calendar, Pairs: v.pairs, Unsound: v.reasons, DesignEffect: report.Unknown(), CarryOver: v.carry, AA: v.aa, AlwaysValid: true, Trips: r.ended,
		},
	}
	for _, arm := range []string{name, r.Control} {
		a := r.Arms[arm]
		if r.Unit == "block" {
			c.Live.Arrivals = append(c.Live.Arrivals, report.Arrival{Arm: arm, Requests: a.Requests, Rate: a.Rate})
		}
		c.Policies = append(c.Policies, report.Policy{
			Name: arm, Sustained: interval(nan, nan, nan), Knee: report.Knee{Gap: report.Unknown()}, Attained: a.InSLO, Rate: a.Rate,
			TTFT90: a.TTFT90 / 1e3, ITL: a.ITL / 1e3, Cached: a.Cached, LoadCV: report.Unknown(), Tuning: "as configured",
		})
	}
	c.Method.RunHours = report.Value(v.hours)
	for j := range r.Paired {
		if d := &r.Paired[j]; d.A == name && d.Metric == metrics[0].name {
			c.Live.DesignEffect = d.Effect
		}
	}
	for _, e := range r.Off {
		if e.Arm == name && e.ESS.Known() {
			in := report.Interval{Mean: e.TTFT.Mean / 1e3, Low: e.TTFT.Low / 1e3, High: e.TTFT.High / 1e3}
			c.Live.OffPolicy = append(c.Live.OffPolicy, report.OffPolicy{Policy: e.Arm + ": " + e.Target, Method: e.Method, TTFT: in, ESS: e.ESS, MaxWeight: e.MaxWeight, N: e.N})
		}
	}
	for _, f := range r.Refused {
		c.Refusals = append(c.Refusals, f.What+": "+f.Why+".")
	}
	if len(r.versus) > 1 {
		c.Refusals = append(c.Refusals, "This page is about "+name+" against "+r.Control+"; the other arms stand in the output of the command.")
	}
	c.Method.Notes = append(slices.Clone(m.Notes), r.Notes...)
	return c
}

// difference is an arm's in the report's units: seconds, shares, and percentage points of attainment.
func (r *Result) difference(arm string) report.Versus {
	out := report.Versus{Other: r.Control}
	for i := range r.Paired {
		d := &r.Paired[i]
		if d.A != arm {
			continue
		}
		scale := report.Value(1)
		var m report.Metric
		switch d.Metric {
		case "ttft_p90":
			m, scale = report.TTFT90, 1e-3
		case "ttft_p99":
			m, scale = report.TTFT99, 1e-3
		case "itl_mean":
			m, scale = report.ITLMean, 1e-3
		case "errors":
			m, scale = report.Errors, 1e-2
		case metrics[0].name:
		default:
			continue
		}
		e := report.Difference{
			Interval: report.Interval{Mean: scale * d.Diff, Low: scale * d.CI[0], High: scale * d.CI[1]},
			Base:     scale * d.Base, SD: scale * d.SD, N: d.N, P: report.Unknown(),
		}
		for _, x := range d.diffs {
			e.Seeds = append(e.Seeds, scale*report.Value(x))
		}
		if m == "" {
			out.Primary = e
		} else {
			out.Others = append(out.Others, report.Effect{Metric: m, Difference: e})
		}
	}
	return out
}
