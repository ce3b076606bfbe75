package extproc

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// expire gives up what has taken too long by now.
func (x *exchange) expire(now time.Time) next {
	if at, ok := x.deadline(); !ok || now.Before(at) {
		return receive
	}
	switch {
	case x.request.deciding: // the flight is not ours to look at
		return x.refuse(pastDeadline())
	case x.flight.Open():
		x.lose(now, fleet.Expired) // bytes go on passing, but the endpoint is not blamed for ever
	default:
		return x.refuse(tooSlow())
	}
	return receive
}

// deadline returns when expire has something to do, if nothing happens until then.
func (x *exchange) deadline() (time.Time, bool) {
	r := &x.request
	switch {
	case x.refused || x.observe:
	case r.deciding:
		return r.due, true
	case x.flight.Open():
		return earlier(x.last.Add(x.limits.Idle), x.routed.Add(x.limits.MaxAge)), true
	case r.phase != idle && !r.decided && !r.abandoned:
		return x.last.Add(x.limits.BodyIdle), true
	}
	return time.Time{}, false
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
