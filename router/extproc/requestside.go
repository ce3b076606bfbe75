package extproc

import (
	"bytes"
	"strconv"
	"time"

	"github.com/presage-router/presage/router/extproc/wire"
)

// requestSide is the direction from the client to the endpoint.
type requestSide struct {
	phase     phase
	mode      wire.Mode
	alone     bool  // there are headers only
	ended     bool  // the body's last message has come
	trailers  bool  // trailers have come
	unread    bool  // the decision needs nothing of the body
	deciding  bool  // settle is to come
	decided   bool  // settle has come
	abandoned bool  // the gateway answered by itself before there was a decision
	declared  int64 // content-length; -1: none
	due       time.Time

	body   body
	remove []string // names of the client's control headers
}

// requestHeaders reads the headers and decides at once where the body cannot matter.
func (x *exchange) requestHeaders(f *frame) next {
	r := &x.request
	if r.phase != idle {
		return receive
	}
	r.phase, r.alone, r.ended, r.declared = headersOwed, f.End, f.End, -1
	for name, value := range f.Headers {
		x.head.Set(string(name), value)
		switch {
		case internal(name):
			r.remove = append(r.remove, string(name))
		case bytes.EqualFold(name, contentLength):
			if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n >= 0 {
				r.declared = n
			}
		}
	}
	body, err := x.parser.Head(&x.req, &x.head, f.End)
	x.api = x.req.API
	if err != nil {
		return x.refuse(refuse(err))
	}
	r.unread = !body
	switch {
	case f.End || r.unread:
		return x.ask()
	case duplex(r.mode):
	case whole(r.mode): // the body does not come before the headers are answered
		x.out = append(x.out, one(wire.AppendReply(nil, wire.RequestHeaders, &wire.Common{Remove: r.remove}, "")))
		r.phase = bodyOwed
	default: // the body is not shown, or only once its endpoint is known
		r.unread = true
		return x.ask()
	}
	return receive
}

var contentLength = []byte("content-length")

// ask asks for the decision.
func (x *exchange) ask() next {
	x.request.deciding = true
	x.request.due = x.last.Add(x.wait)
	return decide
}

// requestBody collects the body while the decision waits for it, or passes it on.
func (x *exchange) requestBody(f *frame) next {
	r := &x.request
	if r.ended || r.abandoned { // some gateways repeat the last message
		return receive
	}
	if r.phase == idle {
		return fail // whatever the client names as destination would be obeyed
	}
	r.ended = f.End
	waiting := !r.decided
	switch {
	case waiting && duplex(r.mode):
		if no, ok := r.body.add(f, r.declared, x.memory); !ok {
			return x.refuse(no)
		}
		if f.End {
			return x.ask()
		}
	case waiting && whole(r.mode):
		r.ended = true
		if no, ok := r.body.add(f, r.declared, x.memory); !ok {
			return x.refuse(no)
		}
		return x.ask()
	case duplex(r.mode):
		x.pass(f)
	default:
		x.out = append(x.out, one(replyRequestBody))
	}
	if f.End {
		r.phase = done
	}
	return receive
}

// requestTrailers ends the body without its own end.
func (x *exchange) requestTrailers() next {
	r := &x.request
	if r.trailers || r.abandoned {
		return receive
	}
	if r.phase == idle {
		return fail
	}
	r.trailers, r.ended = true, true
	if !r.decided {
		return x.ask()
	}
	x.out = append(x.out, one(replyRequestTrailers))
	r.phase = done
	return receive
}

// pass sends a chunk on as it came, in full duplex.
func (x *exchange) pass(f *frame) {
	x.parts = append(x.parts[:0], f.part())
	x.out = pieces(x.out, f.Kind, f.End, x.parts)
	clear(x.parts)
	x.parts = x.parts[:0]
}
