package report

// chip is the sign and the words of a standing, seen from ours.
func chip(s standing, ours string) (sign, text, kind string) {
	switch s {
	case better:
		return "▲", ours + " better", "better"
	case worse:
		return "▼", ours + " worse", "worse"
	case same:
		return "=", "same within 1" + thin + "%", "same"
	case tooFew:
		return "◇", "too few seeds", "undecided"
	default:
		return "◇", "not enough evidence", "undecided"
	}
}

func (p *page) table(c *Comparison, v *Verdict) {
	for i := range c.Policies {
		q := &c.Policies[i]
		l := line{
			Name: q.Name, Tuning: tuning(q), Sustained: number(q.Sustained.Mean, q.Sustained.decimals()), Attained: percent(q.Attained, 1),
			TTFT: number(q.TTFT90, 2), ITL: number(1000*q.ITL, 1), Cached: percent(q.Cached, 0), CV: number(q.LoadCV, 2),
		}
		if q.Knee.Searched && !q.Knee.Reached && q.Sustained.Mean.Known() {
			l.Sustained = "> " + l.Sustained
		}
		switch d := c.against(q.Name); {
		case v.Kind == Void:
			l.Sign, l.Chip, l.Kind = "✕", "void", "worse"
		case q.Name == c.Ours:
			l.Sign, l.Chip, l.Kind = "○", "held against the others", "reference"
		case c.Control != nil && q.Name == c.Control.Policy:
			l.Sign, l.Chip, l.Kind = "✓", "control, lost", "reference"
		case d == nil:
			l.Sign, l.Chip, l.Kind = "◇", "not compared", "undecided"
		case c.Live != nil && refusal(c, d) != "":
			l.Sign, l.Chip, l.Kind = "◇", "no verdict", "undecided"
		default:
			l.Sign, l.Chip, l.Kind = chip(stand(&d.Primary), c.Ours)
		}
		p.Rows = append(p.Rows, l)
		p.Rates = p.Rates || q.Sustained.Mean.Known()
	}
	for i := range c.Policies {
		if q := &c.Policies[i]; q.Name == c.Ours && q.Rate.Known() {
			p.Note = "In SLO to load CV at " + unit(number(q.Rate, three(q.Rate)), "req/s") + " offered."
		}
	}
}

// against is ours minus the named policy; nil: they were not compared.
func (c *Comparison) against(name string) *Versus {
	for i := range c.Versus {
		if c.Versus[i].Other == name {
			return &c.Versus[i]
		}
	}
	return nil
}
