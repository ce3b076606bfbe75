package scrape

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Verdict says how far an endpoint's load may be believed.
type Verdict uint8

// The verdicts of [Trust.Judge].
const (
	// Fresh: the page is recent and nothing contradicts it.
	Fresh Verdict = iota
	// Frozen: the page is recent and says busy, but nothing on it has moved for a while and our own
	// ledger there has been empty as long. The gauges are leftovers.
	Frozen
	// Blind: the server answers requests, its page is not to be had. It is ranked by the ledger alone.
	Blind
	// Stale: there were pages, the last one is old, and nothing shows that the server lives.
	Stale
	// Absent: no page has ever been read and no HTTP answer was got.
	Absent
)

// String returns the verdict's name in metrics and on pages.
func (v Verdict) String() string {
	switch v {
	case Fresh:
		return "fresh"
	case Frozen:
		return "frozen"
	case Blind:
		return "blind"
	case Stale:
		return "stale"
	case Absent:
		return "absent"
	}
	return "unknown"
}

// Out reports whether an endpoint with this verdict is left out of routing while others are not.
func (v Verdict) Out() bool { return v == Stale || v == Absent }

// Trust decides whether a load may be believed, given the ledger of the same endpoint. It is a pure
// function of its fields, the time and one state; the zero value uses the defaults.
//
// Two feedback loops must not close. An engine whose gauges froze at full (after a mass abort it
// reports its last step until the next one) would never be sent the request that makes it step; and
// a fleet whose pages cannot be read would stop. So frozen gauges count as an idle engine: it gets
// its next request Probe after its ledger fell empty, and only one, because with that request open
// the gauges are believed again; if they stay frozen, the next probe follows Probe after the last
// one ended. And no endpoint is left out for missing data while there is no better one (fail open).
//
// Ages are differences of the router's own monotonic times: a step of the wall clock changes nothing.
type Trust struct {
	Stale time.Duration // age from which a page is no longer believed; 0: DefaultStale
	Probe time.Duration // how long gauges and an empty ledger must disagree; 0: DefaultProbe
}

// Defaults of [Trust].
const (
	DefaultStale = 3 * time.Second
	DefaultProbe = 10 * time.Second
)

// frozenUsage is the KV usage from which an engine counts as busy even without requests: one that
// has none holds next to no blocks.
const frozenUsage = 0.05

func (t Trust) stale() time.Duration {
	if t.Stale > 0 {
		return t.Stale
	}
	return DefaultStale
}

func (t Trust) probe() time.Duration {
	if t.Probe > 0 {
		return t.Probe
	}
	return DefaultProbe
}

// Judge gives the verdict on one endpoint.
func (t Trust) Judge(now time.Time, s *fleet.State) Verdict {
	switch l := s.Load; {
	case !l.At.IsZero() && now.Sub(l.At) <= t.stale():
		if t.frozen(now, s) {
			return Frozen
		}
		return Fresh
	case l.Errors > 0 && !l.Unreachable, t.alive(now, s):
		return Blind
	case l.At.IsZero():
		return Absent
	}
	return Stale
}

// alive: requests of ours got tokens there lately, whatever became of the page.
func (t Trust) alive(now time.Time, s *fleet.State) bool {
	return !s.LastToken.IsZero() && now.Sub(s.LastToken) <= t.stale()
}

func (t Trust) frozen(now time.Time, s *fleet.State) bool {
	l := s.Load
	busy := l.Known.Has(fleet.KnowWaiting) && l.Waiting > 0 || l.Known.Has(fleet.KnowRunning) && l.Running > 0 ||
		l.Known.Has(fleet.KnowKV) && l.KVMax > frozenUsage
	if !busy || s.Requests > 0 || l.ChangedAt.IsZero() || now.Sub(l.ChangedAt) < t.probe() {
		return false
	}
	empty := s.Since
	if s.LastEnd.After(empty) {
		empty = s.LastEnd
	}
	return now.Sub(empty) >= t.probe()
}

// Load fills dst with the load that scorers and predictors should use, and returns the verdict. A
// fresh load is as scraped. A frozen one has its gauges at zero. Of any other only the KV capacity,
// which does not age, stays known. dst shares the lists of adapters.
func (t Trust) Load(now time.Time, s *fleet.State, dst *fleet.Load) Verdict {
	v := t.Judge(now, s)
	*dst = *s.Load
	switch v {
	case Fresh:
	case Frozen:
		dst.Waiting, dst.Running, dst.KVUsage, dst.KVMax = 0, 0, 0, 0
	default:
		dst.Known &= fleet.KnowBlocks
		dst.RunningLoRA, dst.WaitingLoRA = nil, nil
	}
	return v
}

// Keep clears keep[i] of the endpoints to leave out, and returns how many of all are out. It looks
// only at endpoints that keep holds at the call, and leaves them all in when it would leave none.
func (t Trust) Keep(now time.Time, states []fleet.State, keep []bool) (out int) {
	in := 0
	for i := range states {
		switch {
		case t.Judge(now, &states[i]).Out():
			out++
		case keep[i]:
			in++
		}
	}
	if in == 0 {
		return out
	}
	for i := range states {
		keep[i] = keep[i] && !t.Judge(now, &states[i]).Out()
	}
	return out
}
