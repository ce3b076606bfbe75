package extproc

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/router"
)

// menu are the messages that an order is made of.
func menu(m modes) []message {
	large := long(70_000)
	observed := reqBody([]byte("x"), false)
	observed.msg.ObservabilityMode = true
	return []message{
		chat(m, "x-gateway-destination-endpoint", "10.9.9.9:1"),
		chat(m, "content-length", "63"),
		open(m, true, ":method", "GET", ":path", "/v1/models"),
		open(m, false, ":method", "POST", ":path", "/v1/other"),
		open(m, false, ":method", "GET", ":path", "/", "upgrade", "websocket"),
		open(m, false),
		reqBody(chatBody, false), reqBody(chatBody, true), reqBody(nil, true), reqBody(nil, false),
		reqBody(large, true), reqBody([]byte("no json"), true),
		reqTrailers(),
		respHeaders(false, "200", "content-type", "application/json"), sseHeaders(), respHeaders(true, "204"), respHeaders(false, "503"), respHeaders(false, "100"),
		respBody(delta("x"), false), respBody(event("[DONE]"), true), respBody("", true), respBody(strings.Repeat("y", 70_000), false),
		respTrailers("grpc-status", "0"),
		unknown(), {msg: &pb.ProcessingRequest{}}, observed,
		reqBody(chatBody, true).subset([]any{}), reqBody(chatBody, true).subset("10.0.0.2"),
	}
}

// playOrder plays any order of messages in any modes, with a policy that may fail, and checks what
// must hold whatever comes.
func playOrder(t tester, request, response, trouble byte, order []byte) {
	m := modes{filter.ProcessingMode_BodySendMode(request % 6), filter.ProcessingMode_BodySendMode(response % 6)}
	o := labOptions{Options: Options{Limits: Limits{MaxBody: 100_000, TotalBytes: 150_000}}}
	switch trouble % 6 {
	case 1:
		o.policy = first{before: func(*router.Query) error { return router.ErrSaturated }}
	case 2:
		o.policy = first{before: func(*router.Query) error { panic("boom") }}
	case 3:
		o.Admission = admit(func(context.Context) error { panic("boom") })
	case 4:
		o.Admission = admit(func(context.Context) error { return errors.New("no") })
	}
	end := io.EOF
	if trouble&0x80 != 0 {
		end = errReset
	}
	l := newLab(t, o)
	list := menu(m)
	var msgs []message
	for _, b := range order[:min(len(order), 40)] {
		msgs = append(msgs, list[int(b)%len(list)])
	}
	if len(msgs) > 0 {
		msgs[0] = msgs[0].configured(m)
	}
	tr := l.run(end, msgs...)
	l.settled()
	l.server.Stop()
	checkOrder(t, m, msgs, tr)
}

// direction is one direction of an exchange, as its messages and replies tell.
type direction struct {
	began, ended        bool // by messages received
	received, sent      []byte
	headers, body, tail int // replies
	finished            bool
	loose               bool // the gateway itself did not begin with the headers
}

// checkOrder judges a transcript by the protocol alone.
func checkOrder(t tester, m modes, msgs []message, tr transcript) {
	t.Helper()
	req, resp := direction{loose: headless(msgs, false)}, direction{loose: headless(msgs, true)}
	immediate := 0
	for _, r := range tr.replies {
		if immediate > 0 {
			t.Fatalf("replies after an immediate one: %q", tr.kinds())
		}
		switch p := r.Response.(type) {
		case *pb.ProcessingResponse_ImmediateResponse:
			immediate++
		case *pb.ProcessingResponse_RequestHeaders:
			req.headers++
			req.order(t, tr, 0)
		case *pb.ProcessingResponse_RequestBody:
			req.piece(t, tr, p.RequestBody)
		case *pb.ProcessingResponse_RequestTrailers:
			req.tail++
			req.order(t, tr, 2)
		case *pb.ProcessingResponse_ResponseHeaders:
			resp.headers++
		case *pb.ProcessingResponse_ResponseBody:
			resp.piece(t, tr, p.ResponseBody)
		case *pb.ProcessingResponse_ResponseTrailers:
			resp.tail++
			resp.order(t, tr, 2)
		}
	}
	observed := false
	for _, msg := range msgs {
		observed = observed || msg.msg.ObservabilityMode
		switch p := msg.msg.Request.(type) {
		case *pb.ProcessingRequest_RequestHeaders:
			if !req.began {
				req.began, req.ended = true, p.RequestHeaders.EndOfStream
			}
		case *pb.ProcessingRequest_RequestBody:
			if !req.ended {
				req.received = append(req.received, p.RequestBody.Body...)
				req.ended = p.RequestBody.EndOfStream
			}
		case *pb.ProcessingRequest_ResponseHeaders:
			resp.began = true
		case *pb.ProcessingRequest_ResponseBody:
			resp.received = append(resp.received, p.ResponseBody.Body...)
		}
	}
	if req.headers > 1 || req.tail > 1 || resp.tail > 1 {
		t.Fatalf("repeated replies: %q", tr.kinds())
	}
	for _, d := range []direction{req, resp} {
		if !strings.HasPrefix(string(d.received), string(d.sent)) {
			t.Fatalf("%d bytes sent back are not those received", len(d.sent))
		}
	}
	if observed || immediate > 0 || tr.err != nil {
		return
	}
	// a good end: nothing may be owed
	duplex := filter.ProcessingMode_FULL_DUPLEX_STREAMED
	if m.request == duplex && req.began && !resp.began && (req.headers == 0 || !req.finished && !alone(msgs)) {
		t.Fatalf("ended well while the request is owed: %q", tr.kinds())
	}
	if m.response == duplex && resp.headers > 0 && len(resp.received) > 0 && !resp.finished && !responseOver(msgs) {
		t.Fatalf("ended well while the response is owed: %q", tr.kinds())
	}
}

// order checks that replies of one direction come as headers, body, trailers.
func (d *direction) order(t tester, tr transcript, part int) {
	t.Helper()
	if part == 2 {
		d.finished = true
	}
	if d.loose {
		return
	}
	if part == 0 && d.body+d.tail > 0 || part == 1 && d.tail > 0 {
		t.Fatalf("replies out of order: %q", tr.kinds())
	}
}

func (d *direction) piece(t tester, tr transcript, b *pb.BodyResponse) {
	t.Helper()
	d.body++
	d.order(t, tr, 1)
	s := b.GetResponse().GetBodyMutation().GetStreamedResponse()
	if d.finished && !d.loose {
		t.Fatalf("a piece after the end: %q", tr.kinds())
	}
	if len(s.GetBody()) > 62_000 {
		t.Fatalf("a piece of %d bytes", len(s.GetBody()))
	}
	d.sent = append(d.sent, s.GetBody()...)
	d.finished = s.GetEndOfStream()
}

// headless reports whether a direction's first message is not its headers.
func headless(msgs []message, response bool) bool {
	for _, m := range msgs {
		switch m.msg.Request.(type) {
		case *pb.ProcessingRequest_RequestHeaders:
			if !response {
				return false
			}
		case *pb.ProcessingRequest_RequestBody, *pb.ProcessingRequest_RequestTrailers:
			if !response {
				return true
			}
		case *pb.ProcessingRequest_ResponseHeaders:
			if response {
				return false
			}
		case *pb.ProcessingRequest_ResponseBody, *pb.ProcessingRequest_ResponseTrailers:
			if response {
				return true
			}
		}
	}
	return false
}

// alone reports whether the first request headers were all of the request.
func alone(msgs []message) bool {
	for _, m := range msgs {
		if h := m.msg.GetRequestHeaders(); h != nil {
			return h.EndOfStream
		}
	}
	return false
}

// responseOver reports whether the first final response headers were all of the response.
func responseOver(msgs []message) bool {
	for _, m := range msgs {
		if h := m.msg.GetResponseHeaders(); h != nil && string(h.Headers.Headers[0].RawValue) != "100" {
			return h.EndOfStream
		}
	}
	return true
}

// TestP39NeverOKWhileOwing is the property of the state machine over all orders of messages.
func TestP39NeverOKWhileOwing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := func(name string) byte { return rapid.Byte().Draw(rt, name) }
		order := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(rt, "order")
		if rapid.Bool().Draw(rt, "begins with a request") {
			order = append([]byte{b("first") % 6}, order...)
		}
		playOrder(rt, b("request mode"), b("response mode"), b("trouble"), order)
	})
}

// FuzzOrder is the same over what the fuzzer finds.
func FuzzOrder(f *testing.F) {
	f.Add(byte(4), byte(4), byte(0), []byte{0, 6, 8, 13, 18, 19})
	f.Add(byte(4), byte(4), byte(0x80), []byte{1, 7, 12, 14, 18, 22})
	f.Add(byte(2), byte(1), byte(3), []byte{0, 7, 13, 19})
	f.Add(byte(4), byte(0), byte(1), []byte{3, 6, 12, 16})
	f.Add(byte(1), byte(4), byte(2), []byte{4, 6, 15, 23, 25})
	f.Add(byte(4), byte(4), byte(4), []byte{0, 13, 8, 20})
	f.Fuzz(func(t *testing.T, request, response, trouble byte, order []byte) {
		playOrder(t, request, response, trouble, order)
	})
}
