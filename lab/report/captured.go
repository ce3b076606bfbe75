package report

func (p *page) captured(c *Comparison) {
	switch k := c.Captured; {
	case k == nil && c.Live != nil:
		p.CapturedNote = "What was possible is not known of live traffic: its requests cannot be played again."
	case k == nil:
		p.CapturedNote = "No reference with knowledge of the future was played, so what is possible is not known."
	case capturedReason(k) != "":
		p.CapturedNote = capturedReason(k)
	default:
		f := bars(k, c.Ours)
		p.Captured = &f
		p.CapturedNote = "0 = " + k.Baseline + ", 100 = " + k.Reference + ", " + unit(number(k.Possible, 1), "points") + " within SLO apart" + gaps(k, c.Ours)
	}
}

// gaps says what lies between ours and what foresees.
func gaps(k *Captured, ours string) string {
	mine, best := Unknown(), Unknown()
	name := ""
	for _, b := range k.Bars {
		switch {
		case b.Name == ours:
			mine = b.Share.Mean
		case b.Foresees && b.Name != k.Reference && b.Share.Mean <= 1 && (!best.Known() || b.Share.Mean > best):
			best, name = b.Share.Mean, b.Name
		}
	}
	if !mine.Known() || !best.Known() {
		return "."
	}
	s := ". " + upper(name) + " minus " + ours + ", " + unit(number(100*(best-mine), 0), "points") + " of 100, is what better forecasts can still win"
	if rest := 1 - best; rest > 0.005 {
		s += "; the other " + number(100*rest, 0) + " need knowledge of later arrivals"
	}
	return s + "."
}
