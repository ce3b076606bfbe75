package extproc

import (
	"net/netip"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/extproc/answer"
	"github.com/presage-router/presage/router/extproc/wire"
)

// setting is what all exchanges share. It does not change while one runs.
type setting struct {
	parser *request.Parser
	memory *memory
	stats  Stats
	limits Limits
	wait   time.Duration // longest time to a decision
	answer Answer
}

// exchange is one HTTP exchange as the gateway shows it: a pure state machine that is told of
// messages, decisions, times and the end, and appends what is to be sent to out. Its owner calls it
// from one goroutine at a time.
type exchange struct {
	setting
	request  requestSide
	response responseSide
	req      request.Request
	head     request.Head
	flight   router.Flight
	reader   answer.Reader
	renamer  answer.Renamer

	subset []netip.AddrPort // the gateway's choice of endpoints
	narrow bool             // subset is in force

	out    []mem.BufferSlice // to be sent, in order
	common wire.Common       // of the reply being made
	parts  []part            // of the body being sent

	begun   bool        // the first message has come
	observe bool        // nothing we send is read
	refused bool        // the client was answered by us
	counted bool        // the request's outcome was told to stats
	api     request.API // of req, which the decision may be writing
	model   string      // of req, once decided
	last    time.Time   // of the last message
	routed  time.Time   // of the decision
}

// reset makes the exchange ready for another stream, keeping memory.
func (x *exchange) reset(s setting) {
	x.req.Reset()
	x.head.Reset()
	x.flight.Reset()
	x.reader.Reset(answer.Opaque, nil)
	x.setting, x.subset, x.out = s, x.subset[:0], x.out[:0]
	x.request = requestSide{remove: x.request.remove[:0]}
	x.response = responseSide{remove: x.response.remove[:0]}
	x.narrow, x.begun, x.observe, x.refused, x.counted = false, false, false, false, false
	x.api, x.model = request.Opaque, ""
	x.last, x.routed = time.Time{}, time.Time{}
}

// receive takes one message. The frame stays the caller's.
func (x *exchange) receive(now time.Time, f *frame) next {
	x.last = now
	if !x.begun {
		x.begun = true
		x.request.mode, x.response.mode = f.Request, f.Response
	}
	if f.Observe {
		x.observe = true
	}
	switch {
	case x.observe:
		return receive
	case x.refused:
		return stop
	}
	x.hints(&f.Message)
	var n next
	switch f.Kind {
	case wire.RequestHeaders:
		n = x.requestHeaders(f)
	case wire.RequestBody:
		n = x.requestBody(f)
	case wire.RequestTrailers:
		n = x.requestTrailers()
	case wire.ResponseHeaders:
		x.responseHeaders(now, f)
	case wire.ResponseBody:
		x.responseBody(now, f)
	case wire.ResponseTrailers:
		x.responseTrailers(now, f)
	case wire.Unknown: // nothing to answer, whatever it is
	}
	if n == receive && x.request.phase == done && x.response.phase == done {
		return stop
	}
	return n
}

// owing reports whether ending the stream now would lose what the gateway waits for.
func (x *exchange) owing() bool {
	if x.observe || x.refused {
		return false
	}
	return duplex(x.request.mode) && x.request.phase != idle && x.request.phase != done ||
		duplex(x.response.mode) && x.response.phase != idle && x.response.phase != done
}

// refuse answers the client in the upstream's place. It may come from another goroutine while the
// decision is still being made: what that uses is left alone until settle or end.
func (x *exchange) refuse(r refusal) next {
	if x.refused || x.observe {
		return stop
	}
	x.refused = true
	x.out = append(x.out, one(r.append(nil, x.api)))
	x.stats.Refused(r.Status, r.reason)
	x.count(r.outcome())
	if !x.request.deciding {
		x.request.body.free(x.memory)
	}
	return stop
}

// count tells stats how the request ended, once.
func (x *exchange) count(o Outcome) {
	if !x.counted {
		x.counted = true
		x.stats.Ended(x.model, !x.routed.IsZero(), o)
	}
}

// finish ends the request in the ledger, once.
func (x *exchange) finish(now time.Time, out *router.Outcome) {
	if !x.flight.Open() {
		return
	}
	x.flight.Finish(now, out)
	x.count(outcomeOf(out.Cause))
	if x.reader.Odd() {
		x.stats.BadUsage()
	}
}

// lose ends a request whose answer was not seen to its end.
func (x *exchange) lose(now time.Time, c fleet.Cause) {
	x.finish(now, &router.Outcome{Cause: c, Usage: x.reader.Usage()})
	x.reader.Reset(answer.Opaque, nil)
}

// end tells that the stream is over; c is the cause of what is still open.
func (x *exchange) end(now time.Time, c fleet.Cause) {
	switch {
	case c != fleet.ClientGone:
	case x.unseen():
		c = x.cause()
	case x.flight.Open() && x.reader.Over(): // many clients close when they have read the last event
		x.complete(now)
	}
	x.lose(now, c)
	if x.request.phase != idle && !x.observe {
		x.count(outcomeOf(c))
	}
	x.request.deciding = false
	x.request.body.free(x.memory)
	for _, m := range x.out {
		m.Free()
	}
	x.out = x.out[:0]
}
