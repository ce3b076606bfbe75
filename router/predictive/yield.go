package predictive

// between returns the weights of the seconds of the own answer and of the streams stalled, for a
// request of that priority. One below 0 (batch work, by the operator's word) yields: what it inflicts
// counts more and what it gets counts less. So it gathers where few stream, away from those who are
// in a hurry, who find such endpoints slow and leave them to it. It is the request's own priority that
// counts, never that of others.
func (p *Policy) between(priority int) (decode, stall float64) {
	if priority < 0 && p.w.Yield > 1 {
		return p.w.Decode / p.w.Yield, p.w.Stall * p.w.Yield
	}
	return p.w.Decode, p.w.Stall
}
