package outlier

import (
	"math"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// State is how far an endpoint is trusted.
type State uint8

// The states of an endpoint.
const (
	Working State = iota
	Warming       // it is new or has recovered, and its chances rise
	Suspect       // it should be out, but too many others are
	Ejected       // it gets probes only
)

// String returns the state's name.
func (s State) String() string { return [...]string{"working", "warming", "suspect", "ejected"}[s] }

// Cause says why an endpoint was ejected.
type Cause uint8

// The causes of an ejection; see the package comment.
const (
	NoCause Cause = iota
	Failures
	Rate
	Silent
	Unreachable
	Slow
	numCauses
)

// String returns the cause's name in metrics.
func (c Cause) String() string {
	return [...]string{"none", "failures", "failure_rate", "silent", "unreachable", "slow"}[c]
}

const (
	probeEvery  = 5 * time.Second
	slowestWait = 60 * time.Second
	forgiveness = 2 * time.Minute
	rateTau     = float64(10 * time.Second)
)

// account is what is known of one endpoint instance.
type account struct {
	instance    uint64
	name, model string
	draining    bool
	paged       bool // metrics pages can be read in general
	round       uint64

	state  State
	cause  Cause
	detail string
	since  time.Time // of the state
	again  bool      // warming after an ejection
	next   time.Time // the next probe, no earlier
	probed time.Time // start of the last probe; zero: none since the ejection
	open   bool      // the last probe has not ended
	opened bool      // it was streamed
	strike int       // ejections and failed probes in the present run of them

	row        int // failures since the last success
	lastFail   time.Time
	fails, all float64 // within about 10 s
	fadedAt    time.Time
	blind      bool // it serves although its page cannot be read
	dark       bool // its page could not be reached when last looked at

	quiet   quiet
	strides strides

	ejections [numCauses]uint64
	probes    uint64
	returns   uint64
}

// chance is the probability with which the endpoint is a candidate, if it is not ejected.
func (a *account) chance(now time.Time) float64 {
	switch a.state {
	case Suspect:
		return rampFloor
	case Warming:
		return min(1, rampFloor+(1-rampFloor)*float64(now.Sub(a.since))/float64(rampTime))
	case Working, Ejected:
	}
	return 1
}

// fade lets old outcomes count less.
func (a *account) fade(now time.Time) {
	if d := now.Sub(a.fadedAt); d > 0 {
		k := math.Exp(-float64(d) / rateTau)
		a.fails *= k
		a.all *= k
		a.fadedAt = now
	}
}

// probeDue reports whether the request at hand should try the endpoint out. An endpoint that was
// silent shows by a streamed request alone that it is not any more, and a page that cannot be
// reached makes a probe all but useless.
func (a *account) probeDue(now time.Time, s *fleet.State, stream bool) bool {
	if a.open || now.Before(a.next) || a.cause == Silent && !stream {
		return false
	}
	last := a.since
	if a.probed.After(last) {
		last = a.probed
	}
	return !s.Unreachable || a.blind || now.Sub(last) >= slowestWait
}

// wait is how long the next probe waits.
func (a *account) wait() time.Duration {
	return min(slowestWait, probeEvery<<min(max(a.strike-1, 0), 10))
}

// eject takes the endpoint out, or makes it a suspect where too many are out.
func (d *Detector) eject(now time.Time, a *account, c Cause, detail string) {
	a.cause, a.detail = c, detail
	if !d.room(a.model) {
		if a.state != Suspect {
			a.state, a.since = Suspect, now
		}
		return
	}
	a.state, a.since, a.again = Ejected, now, false
	d.last.known = false
	a.probed, a.open = time.Time{}, false
	a.strike++
	a.next = now.Add(a.wait())
	a.ejections[c]++
	d.tell(Change{At: now, Kind: Out, Endpoint: a.name, Cause: c, Detail: detail, Wait: a.wait()})
}

// spare makes an ejected endpoint a suspect.
func (d *Detector) spare(now time.Time, a *account) {
	d.tell(Change{At: now, Kind: Spared, Endpoint: a.name, Cause: a.cause, Wait: now.Sub(a.since)})
	a.state, a.since, a.open = Suspect, now, false
	d.last.known = false
}

// recover brings the endpoint back.
func (d *Detector) recover(now time.Time, a *account) {
	if a.state == Ejected {
		a.returns++
		d.tell(Change{At: now, Kind: Back, Endpoint: a.name, Cause: a.cause, Wait: now.Sub(a.since)})
	}
	a.state, a.since, a.again, a.open = Warming, now, true, false
	d.last.known = false
	a.row, a.fails, a.all = 0, 0, 0
	a.blind = a.blind || a.dark
	a.quiet.life(now)
}

// miss notes that a probe failed.
func (d *Detector) miss(now time.Time, a *account, detail string) {
	a.open = false
	a.strike++
	a.next = now.Add(a.wait())
	d.tell(Change{At: now, Kind: Missed, Endpoint: a.name, Cause: a.cause, Detail: detail, Wait: a.wait()})
}

// Kind is what happened to an endpoint.
type Kind uint8

// The kinds of changes.
const (
	Out    Kind = iota // it was ejected
	Missed             // a probe failed
	Back               // it answered a request that was begun since
	Spared             // it is a suspect now: others have left, and too few would remain
)

// Change is one thing that happened to an endpoint, for logs.
type Change struct {
	At       time.Time
	Kind     Kind
	Endpoint string
	Cause    Cause
	Detail   string        // what was seen; empty with Back and Spared
	Wait     time.Duration // until the next probe; with Back and Spared: how long it was out
}

func (d *Detector) tell(c Change) { d.changes = append(d.changes, c) }
