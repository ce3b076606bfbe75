package outlier

import "time"

// Status is what a [Detector] says about one endpoint, counted since it joined.
type Status struct {
	Slot     int
	Instance uint64
	Endpoint string
	State    State
	Cause    Cause     // of the ejection or suspicion
	Detail   string    // what was seen then
	Since    time.Time // of the state; zero: since it joined
	Next     time.Time // with Ejected: the next probe, no earlier

	Ejections  [numCauses]uint64 // by cause
	Probes     uint64
	Recoveries uint64
}

// Report appends the status of every endpoint of the last [Detector.Screen] to dst.
func (d *Detector) Report(dst []Status) []Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	for slot := range d.accounts {
		a := &d.accounts[slot]
		if !d.present(a) {
			continue
		}
		s := Status{
			Slot: slot, Instance: a.instance, Endpoint: a.name, State: a.state, Since: a.since,
			Ejections: a.ejections, Probes: a.probes, Recoveries: a.returns,
		}
		if a.state == Ejected || a.state == Suspect {
			s.Cause, s.Detail = a.cause, a.detail
		}
		if a.state == Ejected {
			s.Next = a.next
		}
		dst = append(dst, s)
	}
	return dst
}

// Causes are the causes of ejections, as they index [Status.Ejections].
func Causes() []Cause { return []Cause{Failures, Rate, Silent, Unreachable, Slow} }
