package extproc

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// The tests P01 to P39 are the cases of the protocol's contract, each under its number there.

func TestP01FDSSmallPost(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join(wholeChat(), ok())...)
	if want := "headers body+$ HEADERS BODY+ BODY+$"; tr.kinds() != want {
		t.Fatalf("replies %q, want %q", tr.kinds(), want)
	}
	sent, answered := tr.bodies()
	equalBytes(t, "request body", sent, chatBody)
	equalBytes(t, "response body", answered, ok()[1].msg.GetResponseBody().Body)
	set, _, metadata := tr.mutation()
	if want := (map[string]string{"x-gateway-destination-endpoint": "10.0.0.1:8000"}); !cmp.Equal(set, want) || metadata != "10.0.0.1:8000" {
		t.Errorf("set %v, metadata %q", set, metadata)
	}
	if tr.err != nil {
		t.Errorf("stream ended with %v", tr.err)
	}
	if o := l.only(); o.Cause != fleet.Complete || o.PromptTokens != 7 || o.OutputTokens != 1 || o.Status != 200 || o.TTFT != 0 {
		t.Errorf("observed %+v", o)
	}
	if l.count("ended ok") != 1 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}

// long is a chat request of at least n bytes.
func long(n int) []byte {
	return []byte(`{"model":"demo","messages":[{"role":"user","content":"` + strings.Repeat("lorem ipsum ", n/12+1) + `"}]}`)
}

func chunked(b []byte, n int) (out []message) {
	for ; len(b) > n; b = b[n:] {
		out = append(out, reqBody(b[:n], false))
	}
	return append(out, reqBody(b, false), reqBody(nil, true))
}

func TestP02FDSMultiChunk(t *testing.T) {
	l := newLab(t, labOptions{})
	play := func(name string, body []byte, size int, kv ...string) {
		tr := l.run(errReset, join([]message{chat(fds, kv...)}, chunked(body, size), ok())...)
		sent, _ := tr.bodies()
		equalBytes(t, name+" request body", sent, body)
		if n := strings.Count(tr.kinds(), "headers"); n != 1 {
			t.Errorf("%s: %d replies to headers", name, n)
		}
		for _, r := range tr.replies {
			if n := len(r.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()); n > 62_000 {
				t.Errorf("%s: piece of %d bytes", name, n)
			}
		}
		l.settled()
	}
	large := long(5 << 20)
	play("149 chunks", large, len(large)/149+1)
	body := long(300_000)
	for name, kv := range map[string][]string{"declared": {"content-length", strconv.Itoa(len(body))}, "not declared": nil, "declared too small": {"content-length", "1"}} {
		for _, size := range []int{len(body), 200_000, 62_001, 700} {
			play(name, body, size, kv...)
		}
	}
	if n := l.count("began"); n != 13 {
		t.Errorf("%d decisions for 13 requests", n)
	}
}

func TestP03FDSTrailers(t *testing.T) {
	l := newLab(t, labOptions{})
	for name, body := range map[string][]message{"body": {reqBody(chatBody[:9], false), reqBody(chatBody[9:], false)}, "large body": {reqBody(long(100_000), false)}} {
		tr := l.run(errReset, join([]message{chat(fds)}, body, []message{reqTrailers()}, ok())...)
		want := "headers body+ trailers HEADERS BODY+ BODY+$"
		if name == "large body" {
			want = "headers body+ body+ trailers HEADERS BODY+ BODY+$"
		}
		if tr.kinds() != want {
			t.Errorf("%s: replies %q, want %q", name, tr.kinds(), want)
		}
	}
	l.settled()
}

func TestP05FDSDuplicateEOS(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join(wholeChat(), []message{reqBody(nil, true), reqBody(chatBody, true)}, ok())...)
	if want := "headers body+$ HEADERS BODY+ BODY+$"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	if l.count("began") != 1 {
		t.Errorf("%d decisions", l.count("began"))
	}
	l.settled()
}

func TestP06FDSEmptyBodyPost(t *testing.T) {
	l := newLab(t, labOptions{})
	// a path whose body is never read: routed, and the empty body sent back
	tr := l.run(errReset, open(fds, false, ":method", "POST", ":path", "/v1/other"), reqBody(nil, true))
	if want := "headers body+$"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	// a path that needs its body
	tr = l.run(errReset, chat(fds), reqBody(nil, true))
	if want := "immediate 400"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	l.settled()
}

func TestP07HeaderOnlyGet(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, m := range []modes{fds, buffered, streamed, none} {
		tr := l.run(errReset, open(m, true, ":method", "GET", ":path", "/v1/models").subset("10.0.0.2"))
		if tr.kinds() != "headers" {
			t.Errorf("%v: replies %q", m, tr.kinds())
		}
		if set, _, metadata := tr.mutation(); set["x-gateway-destination-endpoint"] != "10.0.0.2:8000" || metadata != "10.0.0.2:8000" {
			t.Errorf("%v: set %v, metadata %q", m, set, metadata)
		}
	}
	l.settled()
}

func TestP08HeadResponseEOS(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, status := range []string{"200", "204", "304"} {
		tr := l.run(errReset, open(fds, true, ":method", "HEAD", ":path", "/v1/models"), respHeaders(true, status, "content-type", "application/json"))
		if tr.kinds() != "headers HEADERS" || tr.err != nil {
			t.Errorf("%s: replies %q, error %v", status, tr.kinds(), tr.err)
		}
		l.settled()
	}
	for _, o := range l.observations() {
		if o.Cause != fleet.Complete {
			t.Errorf("cause %v", o.Cause)
		}
	}
}

func TestP09UpgradeIsDecidedOnHeaders(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, m := range []modes{fds, buffered, streamed, none} {
		tr := l.run(errReset, open(m, false, ":method", "GET", ":path", "/v1/realtime", "upgrade", "websocket", "connection", "upgrade"))
		if set, _, _ := tr.mutation(); tr.kinds() != "headers" || set["x-gateway-destination-endpoint"] == "" {
			t.Errorf("%v: replies %q, set %v", m, tr.kinds(), set)
		}
	}
	// frames pass both ways, before and after the switch
	tr := l.run(errReset, open(fds, false, ":method", "GET", ":path", "/v1/realtime", "upgrade", "websocket"),
		reqBody([]byte("early"), false), respHeaders(false, "101", "upgrade", "websocket"), respBody("up", false), reqBody([]byte("down"), false))
	sent, answered := tr.bodies()
	if tr.kinds() != "headers body+ HEADERS BODY+ body+" || string(sent) != "earlydown" || string(answered) != "up" {
		t.Errorf("replies %q, bodies %q %q", tr.kinds(), sent, answered)
	}
	l.settled()
}

func TestP10ConnectMethod(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, open(fds, false, ":method", "CONNECT", ":authority", "gw.example.test:443"))
	if tr.kinds() != "headers" {
		t.Errorf("replies %q", tr.kinds())
	}
	l.settled()
}

func TestP22NoReadyEndpoints(t *testing.T) {
	l := newLab(t, labOptions{fleet: []string{}})
	checkRefusal(t, l.run(errReset, wholeChat()...), 503, ReasonNoEndpoint)
	checkRefusal(t, l.run(errReset, open(fds, true, ":method", "GET", ":path", "/v1/models")), 503, ReasonNoEndpoint)
	if l.count("ended no_endpoint") != 2 || l.count("began") != 0 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}

func TestP24BadBodies(t *testing.T) {
	l := newLab(t, labOptions{})
	for name, body := range map[string]string{
		"bad JSON": `{"model":`, "truncated": string(chatBody[:20]), "trailing": string(chatBody) + "x", "no JSON": "hello",
		"model twice": `{"model":"demo","model":"other","messages":[]}`,
		"depth 600":   `{"model":"demo","messages":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
	} {
		for _, m := range []modes{fds, buffered} {
			tr := l.run(errReset, chat(m), reqBody([]byte(body), true))
			if m == buffered {
				tr.replies = tr.replies[1:] // the headers were answered before the body came
			}
			checkRefusal(t, tr, 400, ReasonBadRequest)
			if t.Failed() {
				t.Fatalf("%s, %v", name, m)
			}
		}
	}
	if l.count("began") != 0 || l.count("ended bad_request") != 12 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}

func TestP25MissingModel(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, body := range []string{`{"messages":[]}`, `{"model":7,"messages":[]}`, `{"model":"","messages":[]}`, `{"model":null,"messages":[]}`} {
		checkRefusal(t, l.run(errReset, chat(fds), reqBody([]byte(body), true)), 400, ReasonBadRequest)
	}
	l.settled()
}

func TestP26UnknownModel(t *testing.T) {
	body := []byte(`{"model":"other","messages":[]}`)
	l := newLab(t, labOptions{strict: true})
	checkRefusal(t, l.run(errReset, chat(fds), reqBody(body, true)), 404, ReasonUnknownModel)
	l.settled()
	l = newLab(t, labOptions{})
	if tr := l.run(errReset, chat(fds), reqBody(body, true)); tr.kinds() != "headers body+$" {
		t.Errorf("replies %q", tr.kinds())
	}
}

func TestP27EscapedModel(t *testing.T) {
	var seen []string
	l := newLab(t, labOptions{policy: first{before: func(q *router.Query) error {
		seen = append(seen, q.Req.Model)
		return nil
	}}})
	for _, body := range []string{`{"model":"a/b","messages":[]}`, `{"mod\u0065l":"a\/b","messages":[]}`} {
		tr := l.run(errReset, chat(fds), reqBody([]byte(body), true))
		sent, _ := tr.bodies()
		equalBytes(t, "body", sent, []byte(body))
	}
	if !cmp.Equal(seen, []string{"a/b", "a/b"}) {
		t.Errorf("models %q", seen)
	}
}

func TestP28GzipRequest(t *testing.T) {
	body := []byte("\x1f\x8b\x08\x00 not really gzip, and never looked at")
	l := newLab(t, labOptions{})
	tr := l.run(errReset, chat(fds, "content-encoding", "gzip"), reqBody(body[:10], false), reqBody(body[10:], true))
	sent, _ := tr.bodies()
	equalBytes(t, "body", sent, body)
	if want := "headers body+ body+$"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	l = newLab(t, labOptions{config: request.Config{RefuseEncoded: true}})
	checkRefusal(t, l.run(errReset, chat(fds, "content-encoding", "gzip")), 415, ReasonEncoding)
	l.settled()
}

func TestP29BodyLimit(t *testing.T) {
	l := newLab(t, labOptions{Options: Options{Limits: Limits{MaxBody: 1 << 20}}})
	held := int64(0)
	for _, size := range []int{64 << 10, 700_000, 1<<20 + 1} {
		msgs := join([]message{chat(fds)}, chunked(long(1<<20), size))
		tr := l.run(errReset, msgs...)
		checkRefusal(t, tr, 413, ReasonTooLarge)
		held = max(held, l.server.setting.memory.budget.used.Load())
		if tr.err != nil {
			t.Errorf("stream ended with %v", tr.err)
		}
	}
	if held != 0 {
		t.Errorf("%d bytes held after a refusal", held)
	}
	exact := long(1 << 20)[:1<<20]
	copy(exact[1<<20-4:], `"}]}`)
	if tr := l.run(errReset, chat(fds), reqBody(exact, true)); tr.immediate() != nil {
		t.Errorf("a body of just the limit: %q", tr.kinds())
	}
	l.settled()
}

// TestMalformedMessages: bytes that are no message end the stream with an error, and what it held.
func TestMalformedMessages(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, msgs := range [][]message{
		{{raw: []byte{0x12, 0xff}}},
		{chat(fds), reqBody(chatBody[:9], false), {raw: []byte("\xff\xff garbage")}},
		{chat(fds), reqBody(chatBody, true), {raw: []byte{0x2a, 0x05, 0x0a}}},
	} {
		if tr := l.run(errReset, msgs...); tr.err == nil {
			t.Errorf("ended well: %q", tr.kinds())
		}
		l.settled()
	}
}
