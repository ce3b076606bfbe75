package extproc

import (
	"bytes"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/extproc/wire"
)

// DecisionHeader names the response header that carries the id of the decision, where it is wanted.
const DecisionHeader = "x-presage-decision"

// ArmHeader names the one that carries the experiment arm, beside it, where there is one.
const ArmHeader = "x-presage-arm"

// responseSide is the direction from the endpoint to the client.
type responseSide struct {
	phase  phase
	mode   wire.Mode
	headed bool // the headers were shown
	status int  // HTTP status; 0: unknown
	alien  bool // the content is of a type that the API never answers with
	failed bool // trailers told of an error
	rename bool // the model's name is put back as the client knows it
	remove []string
}

// responseHeaders notes what is answered, and by whom.
func (x *exchange) responseHeaders(now time.Time, f *frame) {
	p := &x.response
	if p.phase != idle {
		return
	}
	var content, encoding []byte
	c := &x.common
	*c = wire.Common{Set: c.Set[:0]}
	for name, value := range f.Headers {
		switch {
		case string(name) == ":status":
			p.status, _ = strconv.Atoi(string(value))
		case bytes.EqualFold(name, contentType):
			content = value
		case bytes.EqualFold(name, contentEncoding):
			encoding = value
		case internal(name):
			p.remove = append(p.remove, string(name))
		}
	}
	if p.status >= 100 && p.status < 200 && p.status != http.StatusSwitchingProtocols {
		x.out = append(x.out, one(replyResponseHeaders)) // the answer is still to come
		return
	}
	x.abandon()
	if s := f.Served(); s != "" {
		if served, err := netip.ParseAddrPort(s); err == nil {
			x.flight.Served(netip.AddrPortFrom(served.Addr().Unmap(), served.Port()))
		}
	}
	p.headed = true
	x.flight.Status(p.status)
	x.form(content, encoding)
	if p.rename { // its length changes
		p.remove = append(p.remove, "content-length")
	}
	if x.answer.DecisionHeader && !x.routed.IsZero() {
		c.Set = append(c.Set, wire.Header{Name: DecisionHeader, Value: x.flight.ID.String()})
		if arm := x.flight.Decision.Arm; arm != "" {
			c.Set = append(c.Set, wire.Header{Name: ArmHeader, Value: arm})
		}
	}
	if c.Remove = p.remove; len(c.Set)+len(c.Remove) == 0 {
		x.out = append(x.out, one(replyResponseHeaders))
	} else {
		x.out = append(x.out, one(wire.AppendReply(nil, wire.ResponseHeaders, c, "")))
	}
	p.phase = bodyOwed
	if f.End {
		x.complete(now)
	}
}

var (
	contentType     = []byte("content-type")
	contentEncoding = []byte("content-encoding")
	eventStream     = []byte("text/event-stream")
	json            = []byte("application/json")
	jsonSuffix      = []byte("+json")
)

// abandon gives up a request that the gateway answers by itself before it knows an endpoint.
func (x *exchange) abandon() {
	r := &x.request
	if r.phase == idle || r.decided {
		return
	}
	r.abandoned, r.phase = true, done
	r.body.free(x.memory)
}

// responseBody sends the chunk on and reads what it says.
func (x *exchange) responseBody(now time.Time, f *frame) {
	p := &x.response
	if p.phase == done {
		return
	}
	switch {
	case p.rename:
		x.renamed(f.Body, f.End, f.End)
	case duplex(p.mode):
		x.pass(f)
	default:
		x.out = append(x.out, one(replyResponseBody))
	}
	x.flight.Tokens(now, x.reader.Write(f.Body))
	if f.End {
		x.complete(now)
	}
}

// renamed sends a chunk on with the model's name put back; ended tells that it is the body's last,
// end that it must end the body.
func (x *exchange) renamed(chunk []byte, ended, end bool) {
	x.parts = append(x.parts[:0], part{data: x.renamer.Append(nil, chunk, ended)})
	x.out = pieces(x.out, wire.ResponseBody, end, x.parts)
	x.parts = x.parts[:0]
}

// responseTrailers ends the answer.
func (x *exchange) responseTrailers(now time.Time, f *frame) {
	if x.response.phase == done {
		return
	}
	if x.response.rename {
		x.renamed(nil, true, false)
	}
	x.out = append(x.out, one(replyResponseTrailers))
	if v, ok := f.Header("grpc-status"); ok && string(v) != "0" {
		x.response.failed = true
	}
	x.complete(now)
}

// complete ends the answer, and with it the request.
func (x *exchange) complete(now time.Time) {
	x.response.phase = done
	x.flight.Tokens(now, x.reader.Close())
	out := router.Outcome{Cause: x.cause(), Usage: x.reader.Usage()}
	if out.Cause == fleet.Complete {
		out.Blocks = x.req.Chain()
	}
	x.finish(now, &out)
}
