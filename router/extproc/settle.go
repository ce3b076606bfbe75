package extproc

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/presage-router/presage/router/extproc/wire"
)

// settle takes the decision: err refuses the request, else the flight is routed. It returns stop
// where nothing remains to be done; a decision that came too late is undone by end.
func (x *exchange) settle(now time.Time, err error) next {
	r := &x.request
	r.deciding = false
	switch {
	case x.refused:
		r.body.free(x.memory)
		return stop
	case errors.Is(err, errLeft): // the end of the stream is next
		return receive
	}
	r.decided, x.model = true, x.req.Model
	if err != nil {
		return x.refuse(refuse(err))
	}
	x.routed = now
	x.stats.Began(x.model)
	if whole(r.mode) && r.phase == bodyOwed {
		x.sendWhole()
	} else {
		x.sendHeaders()
	}
	if r.phase == done && x.response.phase == done {
		return stop
	}
	return receive
}

// sendHeaders answers the headers with the decision, then whatever of body and trailers waits.
func (x *exchange) sendHeaders() {
	r := &x.request
	changed := x.splice()
	destination := x.destination()
	c := x.decision(destination)
	if changed && r.declared >= 0 {
		c.Set = append(c.Set, x.length())
	}
	x.out = append(x.out, one(wire.AppendReply(make([]byte, 0, replySize), wire.RequestHeaders, c, destination)))
	r.phase = bodyOwed
	if r.ended {
		if duplex(r.mode) && !r.alone {
			x.out = pieces(x.out, wire.RequestBody, !r.trailers, x.parts)
		}
		r.phase = done
		if r.trailers {
			x.out = append(x.out, one(replyRequestTrailers))
		}
	}
	x.drop()
}

// replySize holds most replies that name an endpoint.
const replySize = 256

// sendWhole answers a buffered body with the decision; its headers were answered before.
func (x *exchange) sendWhole() {
	r := &x.request
	changed := x.splice()
	destination := x.destination()
	c := x.decision(destination)
	if changed {
		c.Replace = true
		for i := range x.parts {
			c.Body = append(c.Body, x.parts[i].data...)
		}
		c.Set = append(c.Set, x.length())
	}
	if r.trailers { // there was no body; only metadata can still tell the endpoint
		x.out = append(x.out, one(wire.AppendReply(nil, wire.RequestTrailers, nil, destination)))
	} else {
		x.out = append(x.out, one(wire.AppendReply(make([]byte, 0, replySize), wire.RequestBody, c, destination)))
	}
	r.phase = done
	x.drop()
}

// splice takes the collected body over into parts, with the name of its model replaced where a
// rewrite applies.
func (x *exchange) splice() (changed bool) {
	data := x.request.body.data
	before, model, after := x.req.Splice(data)
	p := x.request.body.release(x.memory)
	if model == nil {
		x.parts = append(x.parts[:0], p)
		return false
	}
	x.parts = append(x.parts[:0],
		part{data: before, buf: p.buf, at: p.at},
		part{data: bytes.Clone(model)}, // the request is reused before the transport is done
		part{data: after, buf: p.buf, at: p.at + len(data) - len(after)})
	return true
}

// length is the header that tells the length of parts.
func (x *exchange) length() wire.Header {
	n := 0
	for i := range x.parts {
		n += len(x.parts[i].data)
	}
	return wire.Header{Name: "content-length", Value: strconv.Itoa(n)}
}

// drop gives up the memory of parts, which all lie in the buffer of the first.
func (x *exchange) drop() {
	if x.parts[0].buf != nil {
		x.parts[0].buf.Free()
	}
	clear(x.parts)
	x.parts = x.parts[:0]
}

// decision is what the decision changes in the request's headers.
func (x *exchange) decision(destination string) *wire.Common {
	x.common = wire.Common{
		Set:        append(x.common.Set[:0], wire.Header{Name: wire.Destination, Value: destination}),
		Remove:     x.request.remove,
		ClearRoute: x.answer.ClearRouteCache,
	}
	return &x.common
}

// destination names the picked endpoint and, where the gateway can use them, the next best.
func (x *exchange) destination() string {
	var arr [64]byte
	b := x.flight.Picked.Addr.AppendTo(arr[:0])
	left := x.answer.Endpoints - 1
	for i, e := range x.flight.Fallback {
		if left <= 0 {
			break
		}
		if e == x.flight.Picked || slices.Contains(x.flight.Fallback[:i], e) {
			continue
		}
		b = e.Addr.AppendTo(append(b, ','))
		left--
	}
	return string(b)
}
