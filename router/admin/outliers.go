package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router/outlier"
)

// What the metrics page says of endpoints that are kept out.
var (
	descEjections  = desc("endpoint_ejections_total", "Times the endpoint was kept out of the decisions, by cause, since it joined; a cause that never applied is absent.", "cause", "endpoint")
	descProbes     = desc("endpoint_probes_total", "Requests sent to the endpoint to try it out while it was kept out, since it joined.", "endpoint")
	descRecoveries = desc("endpoint_recoveries_total", "Times that an answer brought the endpoint back, since it joined.", "endpoint")
)

// trust is what a detector says of endpoints, by instance.
type trust map[uint64]*outlier.Status

func trustOf(d *outlier.Detector) trust {
	if d == nil {
		return nil
	}
	all := d.Report(nil)
	t := make(trust, len(all))
	for i := range all {
		t[all[i].Instance] = &all[i]
	}
	return t
}

// state is the condition of an endpoint, what the detector says included.
func (t trust) state(s *fleet.State, now time.Time) string {
	is := state(s, now)
	if o := t[s.Instance]; o != nil && o.State == outlier.Ejected && is != "draining" {
		return "ejected"
	}
	return is
}

// tell emits the counts of one endpoint.
func (t trust) tell(e emitter, s *fleet.State, name string) {
	o := t[s.Instance]
	if o == nil {
		return
	}
	for _, c := range outlier.Causes() {
		if n := o.Ejections[c]; n > 0 {
			e.counter(descEjections, float64(n), pairs("cause", c.String(), "endpoint", telemetry.Clean(name))...)
		}
	}
	e.counter(descProbes, float64(o.Probes), pairs("endpoint", telemetry.Clean(name))...)
	e.counter(descRecoveries, float64(o.Recoveries), pairs("endpoint", telemetry.Clean(name))...)
}

func describeTrust(ch chan<- *prometheus.Desc) {
	ch <- descEjections
	ch <- descProbes
	ch <- descRecoveries
}

// Outlier is what is known of how an endpoint works, as the page shows it.
type Outlier struct {
	State      string            `json:"state"` // working, warming, suspect (it should be out, but too many are), ejected
	Since      *time.Time        `json:"since,omitempty"`
	Cause      string            `json:"cause,omitempty"`
	Detail     string            `json:"detail,omitempty"`
	Probe      *time.Time        `json:"next_probe,omitempty"` // no earlier
	Ejections  map[string]uint64 `json:"ejections,omitempty"`  // by cause, since it joined, as the rest
	Probes     uint64            `json:"probes"`
	Recoveries uint64            `json:"recoveries"`
}

// page describes an endpoint for the endpoints page; nil when there is nothing to tell.
func (t trust) page(s *fleet.State) *Outlier {
	o := t[s.Instance]
	if o == nil {
		return nil
	}
	out := &Outlier{State: o.State.String(), Detail: o.Detail, Probes: o.Probes, Recoveries: o.Recoveries}
	if o.Cause != outlier.NoCause {
		out.Cause = o.Cause.String()
	}
	if !o.Since.IsZero() {
		out.Since = &o.Since
	}
	if !o.Next.IsZero() {
		out.Probe = &o.Next
	}
	for _, c := range outlier.Causes() {
		if n := o.Ejections[c]; n > 0 {
			if out.Ejections == nil {
				out.Ejections = map[string]uint64{}
			}
			out.Ejections[c.String()] = n
		}
	}
	return out
}
