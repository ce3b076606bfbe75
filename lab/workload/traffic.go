package workload

import (
	"slices"
	"time"

	"github.com/presage-router/presage/features/request"
)

func parseTraffic(v *node, s *Scenario, slo request.SLO) *Traffic {
	if !v.mapping() {
		return nil
	}
	t := &Traffic{
		Class: v.need("class").text(), Model: v.key("model").text(),
		From: v.key("from").duration(), Until: v.key("until").duration(),
		SLO: parseSLO(v.key("slo"), slo), Priority: int(v.key("priority").number(-1000, 1000)),
		MaxTokens: v.key("max_tokens").count(1, maxTokens), Timeout: v.key("timeout").duration(), Users: v.key("users").count(1, maxCount),
	}
	if slices.ContainsFunc(s.Traffic, func(o Traffic) bool { return o.Class == t.Class }) {
		v.key("class").fail("%q is there twice", t.Class)
	}
	if v.has("class") && !nameForm.MatchString(t.Class) {
		v.key("class").fail("%q is not a name of lower-case letters, digits and hyphens", t.Class)
	}
	until := t.Until
	if until == 0 {
		until = s.Duration
	}
	if until > s.Duration || t.From >= until && s.Duration > 0 {
		v.fail("its time from %s until %s is not within the scenario's %s", t.From, until, s.Duration)
	}
	if tr := v.key("trace"); tr.there() {
		t.Trace = parseTrace(tr)
		for _, name := range []string{"arrivals", "prompt", "output", "prefix", "session", "users", "adapters", "cancel"} {
			if v.has(name) {
				v.key(name).fail("does not go with trace, which brings its own")
			}
		}
		v.end()
		return t
	}
	t.parseRequests(v)
	v.end()
	return t
}

// parseRequests reads what generated traffic needs.
func (t *Traffic) parseRequests(v *node) {
	t.Prompt, t.Output = parseDist(v.need("prompt"), 1, maxTokens), parseDist(v.need("output"), 1, maxTokens)
	if v.has("prompt") && t.Prompt.IsZero() {
		t.Prompt = Dist{Kind: "fixed", A: 1}
	}
	if v.has("output") && t.Output.IsZero() {
		t.Output = Dist{Kind: "fixed", A: 1}
	}
	for _, e := range v.key("prefix").list() {
		if !e.mapping() {
			continue
		}
		p := Prefix{
			Groups: 1, Tokens: parseDist(e.need("tokens"), 1, maxTokens), Pick: parsePick(e.key("pick")),
			Renew: e.key("renew").duration(), Tenants: e.key("tenants").flag(), Text: e.key("text").text(),
		}
		if c := e.key("groups"); c.there() {
			p.Groups = max(1, c.count(1, maxCount))
		}
		if c := e.key("renew"); c.there() && p.Renew < time.Millisecond {
			c.fail("%s is shorter than 1ms", p.Renew)
		}
		e.end()
		t.Prefix = append(t.Prefix, p)
	}
	if len(t.Prefix) > maxLevels {
		v.key("prefix").fail("%d levels; at most %d", len(t.Prefix), maxLevels)
	}
	if c := v.key("adapters"); c.mapping() {
		t.Adapters, t.AdapterPick = c.need("count").count(1, 1<<16), parsePick(c.key("pick"))
		c.end()
	}
	if c := v.key("cancel"); c.mapping() {
		t.CancelShare, t.CancelTokens = c.need("share").number(0, 1), parseDist(c.need("after"), 1, maxTokens)
		c.end()
	}
	if c := v.key("session"); c.mapping() {
		t.Session = &Session{
			Turns: parseDist(c.need("turns"), 1, 1e6), Think: parseDist(c.need("think"), 0, 1e6),
			Next: parseDist(c.need("next"), 1, maxTokens), Limit: c.key("limit").count(1, maxTokens),
		}
		c.end()
		if t.Users > 0 {
			v.key("users").fail("does not go with session: each conversation has a session id of its own")
		}
	}
	t.parseArrivals(v.need("arrivals"))
}

func (t *Traffic) parseArrivals(v *node) {
	list := v.list()
	if v.there() && len(list) == 0 {
		v.fail("names no arrival process")
	}
	for _, e := range list {
		kind, c := e.only("poisson", "gamma", "square", "spikes", "burst", "closed")
		if c == nil || !c.mapping() {
			continue
		}
		a := Arrivals{Kind: kind}
		switch kind {
		case "poisson":
			a.Rate = c.rate("rate")
		case "gamma":
			a.Rate, a.CV = c.rate("rate"), c.need("cv").number(.05, 20)
		case "square":
			a.Rate, a.High, a.Every, a.Length = c.rate("low"), c.rate("high"), c.period("every"), c.period("high_for")
			if a.Length > a.Every {
				c.key("high_for").fail("%s is longer than every %s", a.Length, a.Every)
			}
		case "spikes":
			a.Rate, a.Every, a.Length, a.First = c.rate("rate"), c.period("every"), c.period("length"), c.key("first").duration()
			if a.Length > a.Every {
				c.key("length").fail("%s is longer than every %s", a.Length, a.Every)
			}
		case "burst":
			a.Count, a.Every, a.Length, a.First = c.need("count").count(1, maxCount), c.period("every"), c.period("within"), c.key("first").duration()
		case "closed":
			a.Count, a.Ramp, a.Think = c.need("users").count(0, maxCount), c.key("ramp").duration(), parseDist(c.key("think"), 0, 1e6)
			if r := c.key("rounds"); r.there() {
				a.Rounds = r.count(1, maxCount)
			}
			for _, st := range c.key("steps").list() {
				if st.mapping() {
					a.Steps = append(a.Steps, Step{At: st.need("at").duration(), Users: st.need("users").count(1, maxCount)})
					st.end()
				}
			}
			if slices.ContainsFunc(t.Prefix, func(p Prefix) bool { return p.Renew > 0 }) {
				e.fail("does not go with a prefix that is renewed: closed-loop users have no clock")
			}
		}
		c.end()
		t.Arrivals = append(t.Arrivals, a)
	}
}

func (v *node) rate(name string) float64 {
	c := v.need(name)
	if !c.there() {
		return 1
	}
	return max(1e-6, c.number(1e-6, maxRate))
}

func (v *node) period(name string) time.Duration {
	c := v.need(name)
	d := c.duration()
	if c.there() && d < time.Millisecond {
		c.fail("%s is shorter than 1ms", d)
	}
	return max(d, time.Millisecond)
}
