package report

import (
	"fmt"
	"strings"
)

// refusals are what the comparison does not show, one sentence each.
func refusals(c *Comparison, v *Verdict) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s := &c.Scope; s.Planned > s.Done {
		add("Interrupted: %s of %s were made; only seeds that are whole count.", count(s.Done), plural(s.Planned, "run"))
	}
	if c.Control == nil && c.Live == nil {
		add("No negative control was played, so nothing shows that this comparison can tell a bad policy.")
	}
	if c.Primary == SustainedRate {
		for _, p := range c.Policies {
			switch {
			case p.Knee.Searched && !p.Knee.Reached:
				add("Refused: the sustained rate of %s. Not reached: raise the swept rates.", p.Name)
			case isCoarse(&p.Knee):
				add("Coarse: the rates around the sustained rate of %s are %s of it apart.", p.Name, percent(p.Knee.Gap, 0))
			}
		}
	} else if c.Live == nil {
		add("Refused: a sustained rate. No rates were swept.")
	}
	refuseEffects(c, add)
	var few []string
	for i := range c.Classes {
		if s := &c.Classes[i]; s.Requests < leastRequests {
			few = append(few, fmt.Sprintf("%s (%s)", s.Name, plural(s.Requests, "request")))
		}
	}
	if len(few) > 0 {
		add("Refused: %s. Too few to split out.", list(unique(few)))
	}
	if c.Live == nil && v.Kind != Void {
		for i := range c.Versus {
			w := &c.Versus[i]
			if w.Other != v.Against && hasWinner(&w.Primary) && mayNotCarryOver(&w.Primary, c.Method.simulator()) {
				add("Against %s the difference is below the simulator's own error: it may not carry over to hardware.", w.Other)
			}
		}
	}
	if l := c.Live; l != nil {
		for _, reason := range l.Unsound {
			add("%s.", upper(reason))
		}
		for i := range l.OffPolicy {
			if reason := offPolicyReason(&l.OffPolicy[i]); reason != "" {
				add("Refused: an estimate for %s from logged decisions: %s.", l.OffPolicy[i].Policy, reason)
			}
		}
	}
	for _, r := range c.Refusals {
		if r = strings.TrimSpace(r); r != "" {
			out = append(out, r)
		}
	}
	return out
}

// refuseEffects tells which intervals of p99 are missing.
func refuseEffects(c *Comparison, add func(string, ...any)) {
	fewest := 0
	for i := range c.Versus {
		for _, e := range c.Versus[i].Others {
			if e.Metric == TTFT99 && e.N < leastForP99 && (fewest == 0 || e.N < fewest) {
				fewest = max(e.N, 1)
			}
		}
	}
	if fewest > 0 {
		add("Refused: an interval of TTFT p99. Slow requests come in bursts; %d of %d seeds needed.", fewest, leastForP99)
	}
}

func unique(names []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
