package report

// livePage is what the page of live traffic has beside.
type livePage struct {
	Reading   string // whether it may be read at any time
	Queues    string // what shared queues allow
	Calendar  *figure
	Design    string
	CarryOver string
	Arrivals  string
	AA        string
	Trips     []string
	OffPolicy []string
}

func newLive(c *Comparison) *livePage {
	l := c.Live
	p := &livePage{
		Reading: "The intervals are always valid: they may be read at any time.", Design: "Design effect: not measured.",
		CarryOver: "Carry-over between blocks: not tested.", Arrivals: "Arrivals by arm: not known.", AA: "A/A check: not made.",
	}
	if reason := peekingReason(l); reason != "" {
		p.Reading = upper(reason) + "."
	}
	if reason := sharedReason(l); reason != "" {
		p.Queues = upper(reason) + ": within shared queues, biased towards no difference or worse. No claim for the fleet."
	}
	if len(l.Calendar) > 0 {
		f := calendar(l, c.Ours)
		p.Calendar = &f
	}
	if l.DesignEffect.Known() {
		p.Design = "Design effect: " + number(l.DesignEffect, 1) + " times the variance of independent requests."
	}
	if k := l.CarryOver; k != nil {
		p.CarryOver = "Carry-over: first halves of blocks " + unit(k.First.bracket(), "points") + ", second halves " + unit(k.Second.bracket(), "points") + ", " + pValue(k.P) + "."
	}
	if len(l.Arrivals) > 0 {
		p.Arrivals = "Arrivals: "
		for i, a := range l.Arrivals {
			if i > 0 {
				p.Arrivals += ", "
			}
			p.Arrivals += a.Arm + " " + unit(number(a.Rate, three(a.Rate)), "req/s") + " (" + plural(a.Requests, "request") + ")"
		}
		p.Arrivals += "; " + percent(imbalance(l.Arrivals), 1) + " apart, of " + percent(mostImbalance, 0) + " allowed."
	}
	if a := l.AA; a != nil {
		p.AA = "A/A check: " + pValue(a.P) + " over " + plural(a.N, "block pair") + ", interval ±" + unit(number(a.Wide, noise(a.Wide)), "points") + "."
	}
	for _, t := range l.Trips {
		if !t.Value.Known() {
			p.Trips = append(p.Trips, t.At.Format("02 Jan 15:04")+" "+t.Name+".")
			continue
		}
		p.Trips = append(p.Trips, t.At.Format("02 Jan 15:04")+" "+t.Name+": "+number(t.Value, three(t.Value))+", limit "+number(t.Limit, three(t.Limit))+".")
	}
	for i := range l.OffPolicy {
		if o := &l.OffPolicy[i]; offPolicyReason(o) == "" {
			i := o.TTFT.times(1000)
			p.OffPolicy = append(p.OffPolicy, o.Policy+", "+o.Method+": mean TTFT of one decision "+unit(number(i.Mean, i.decimals())+" ["+number(i.Low, i.decimals())+", "+number(i.High, i.decimals())+"]", "ms")+
				", effective sample "+percent(o.ESS, 0)+" of "+plural(o.N, "request")+". What later decisions would have been is not estimated.")
		}
	}
	return p
}
