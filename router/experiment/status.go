package experiment

import "github.com/presage-router/presage/router"

// Status is where an experiment stands.
type Status struct {
	Unit    Unit
	Control string
	Arms    []ArmStatus // held-back blocks last, where there are any
	Trip    *Trip       // nil: no guardrail has tripped
}

// ArmStatus is what an arm has seen.
type ArmStatus struct {
	Name, Policy string
	Share        float64
	Decisions    uint64 // washouts included
	Ledger
}

// Status returns where the experiment stands.
func (e *Experiment) Status() Status {
	s := Status{Unit: e.opts.Unit, Control: e.opts.Arms[e.control].Name, Trip: e.trip.Load()}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.decisions {
		a := ArmStatus{Name: HeldBack, Share: e.opts.HoldBack, Decisions: e.decisions[i].Load(), Ledger: e.ledger[i]}
		p := e.opts.Arms[e.control].Policy
		if i < len(e.opts.Arms) {
			a.Name, a.Share = e.opts.Arms[i].Name, e.opts.Arms[i].Share
			p = e.opts.Arms[i].Policy
		} else if e.held == nil {
			break
		}
		a.Policy = p.Name()
		s.Arms = append(s.Arms, a)
	}
	return s
}

// Of finds the experiment and the shadows that a policy is composed of; nil where there are none.
func Of(p router.Policy) (*Experiment, *Shadow) {
	s, _ := p.(*Shadow)
	if s != nil {
		p = s.in
	}
	e, _ := p.(*Experiment)
	return e, s
}
