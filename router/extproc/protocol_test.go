package extproc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
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
	equalBytes(t, "response body", answered, []byte(ok()[1].msg.GetResponseBody().Body))
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

func TestP11BufferedOrder(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join([]message{chat(buffered, "x-gateway-destination-endpoint", "10.9.9.9:1"), reqBody(chatBody, true)},
		[]message{respHeaders(false, "200", "content-type", "application/json"), respBody(`{"usage":{"prompt_tokens":3}}`, true)})...)
	if want := "headers body HEADERS BODY"; tr.kinds() != want {
		t.Fatalf("replies %q, want %q", tr.kinds(), want)
	}
	if c := tr.replies[0].GetRequestHeaders().GetResponse(); len(c.GetHeaderMutation().GetSetHeaders()) != 0 || !cmp.Equal(c.GetHeaderMutation().GetRemoveHeaders(), []string{"x-gateway-destination-endpoint"}) {
		t.Errorf("headers were answered with %v", c)
	}
	body := tr.replies[1]
	if body.GetDynamicMetadata() == nil || len(body.GetRequestBody().GetResponse().GetHeaderMutation().GetSetHeaders()) != 1 || body.GetRequestBody().GetResponse().GetBodyMutation() != nil {
		t.Errorf("the body was answered with %v", body)
	}
	if o := l.only(); o.Cause != fleet.Complete || o.PromptTokens != 3 {
		t.Errorf("observed %+v", o)
	}
	l.settled()
}

func TestP12BufferedMutationContentLength(t *testing.T) {
	l := newLab(t, labOptions{config: request.Config{Rewrite: map[string]string{"alias": "demo"}}})
	body := []byte(`{ "model" : "alias","messages":[{"role":"user","content":"hi"}],"seed":9007199254740995}`)
	want := bytes.Replace(body, []byte(`"alias"`), []byte(`"demo"`), 1)
	tr := l.run(errReset, chat(buffered, "content-length", strconv.Itoa(len(body))), reqBody(body, true))
	c := tr.replies[1].GetRequestBody().GetResponse()
	equalBytes(t, "mutated body", c.GetBodyMutation().GetBody(), want)
	if set, _, _ := tr.mutation(); set["content-length"] != strconv.Itoa(len(want)) {
		t.Errorf("set %v, want content-length %d", set, len(want))
	}
	// full duplex: the client's length, had the gateway kept it, must be corrected
	tr = l.run(errReset, chat(fds, "content-length", strconv.Itoa(len(body))), reqBody(body, true))
	sent, _ := tr.bodies()
	equalBytes(t, "streamed body", sent, want)
	if set, _, _ := tr.mutation(); set["content-length"] != strconv.Itoa(len(want)) {
		t.Errorf("set %v, want content-length %d", set, len(want))
	}
	// and must not appear where the client sent none, nor where nothing changed
	for _, b := range [][]byte{body, chatBody} {
		kv := []string{}
		if bytes.Equal(b, chatBody) {
			kv = []string{"content-length", strconv.Itoa(len(b))}
		}
		tr = l.run(errReset, chat(fds, kv...), reqBody(b, true))
		if set, _, _ := tr.mutation(); len(set) != 1 {
			t.Errorf("set %v", set)
		}
	}
	l.settled()
}

// TestP12LargeRewrite sends a rewritten body in more than one piece.
func TestP12LargeRewrite(t *testing.T) {
	l := newLab(t, labOptions{config: request.Config{Rewrite: map[string]string{"demo": "a-much-longer-name"}}})
	for _, size := range []int{100, 61_900, 200_000} {
		body := long(size)
		want := bytes.Replace(body, []byte(`"demo"`), []byte(`"a-much-longer-name"`), 1)
		for _, chunk := range []int{len(body), 1000} {
			tr := l.run(errReset, join([]message{chat(fds)}, chunked(body, chunk))...)
			sent, _ := tr.bodies()
			equalBytes(t, fmt.Sprint("rewritten body of ", size), sent, want)
		}
	}
	l.settled()
}

func TestP13StreamedMode(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, chat(streamed), reqBody(chatBody[:5], false), reqBody(chatBody[5:], true),
		respHeaders(false, "200", "content-type", "text/event-stream"), respBody("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", false), respBody("data: [DONE]\n\n", true))
	if want := "headers body body HEADERS BODY BODY"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	if set, _, metadata := tr.mutation(); set["x-gateway-destination-endpoint"] == "" || metadata == "" || tr.replies[0].DynamicMetadata == nil {
		t.Errorf("set %v, metadata %q", set, metadata)
	}
	if o := l.only(); o.Cause != fleet.Complete || o.OutputTokens != 1 {
		t.Errorf("observed %+v", o)
	}
	l.settled()
}

func TestP14NoneMode(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, chat(none), respHeaders(false, "200", "content-type", "application/json"))
	if want := "headers HEADERS"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	if o := l.only(); o.Cause != fleet.Complete || o.TTFT != 0 || o.OutputTokens != features.Unknown {
		t.Errorf("observed %+v", o) // the body is not shown: only the end of the stream tells of its end
	}
	l.settled()
	tr = l.run(errReset, chat(none), respHeaders(false, "503"))
	if l.observations()[1].Cause != fleet.UpstreamError {
		t.Errorf("observed %+v", l.observations()[1])
	}
}

func TestP14MixedModes(t *testing.T) {
	mixed := modes{fds.request, none.response}
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join([]message{chat(mixed), reqBody(chatBody, true)}, []message{respHeaders(false, "200")})...)
	if want := "headers body+$ HEADERS"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	mixed = modes{buffered.request, fds.response}
	tr = l.run(errReset, join([]message{chat(mixed), reqBody(chatBody, true)}, ok())...)
	if want := "headers body HEADERS BODY+ BODY+$"; tr.kinds() != want {
		t.Errorf("replies %q, want %q", tr.kinds(), want)
	}
	l.settled()
}

func TestP16MetadataEqualsHeader(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 9} {
		for _, m := range []modes{fds, buffered, streamed, none} {
			l := newLab(t, labOptions{Options: Options{Answer: Answer{Endpoints: n}}})
			tr := l.run(errReset, chat(m), reqBody(chatBody, true))
			if set, _, metadata := tr.mutation(); set["x-gateway-destination-endpoint"] != metadata || metadata == "" {
				t.Errorf("%d endpoints, %v: header %q, metadata %q", n, m, set["x-gateway-destination-endpoint"], metadata)
			}
		}
	}
}

func TestP17MultiEndpointKnob(t *testing.T) {
	for n, want := range map[int]string{0: "10.0.0.1:8000", 1: "10.0.0.1:8000", 2: "10.0.0.1:8000,10.0.0.2:8000", 3: "10.0.0.1:8000,10.0.0.2:8000,10.0.0.3:8000", 8: "10.0.0.1:8000,10.0.0.2:8000,10.0.0.3:8000"} {
		l := newLab(t, labOptions{Options: Options{Answer: Answer{Endpoints: n}}})
		tr := l.run(errReset, wholeChat()...)
		if set, _, _ := tr.mutation(); set["x-gateway-destination-endpoint"] != want {
			t.Errorf("%d: %q, want %q", n, set["x-gateway-destination-endpoint"], want)
		}
	}
}

func TestP18IPv6Endpoint(t *testing.T) {
	l := newLab(t, labOptions{fleet: []string{"[fd00::1]:8000"}})
	tr := l.run(errReset, wholeChat()...)
	if set, _, metadata := tr.mutation(); set["x-gateway-destination-endpoint"] != "[fd00::1]:8000" || metadata != "[fd00::1]:8000" {
		t.Errorf("header %v, metadata %q", set, metadata)
	}
	tr = l.run(errReset, open(fds, true, ":method", "GET", ":path", "/").subset("fd00::1, [fd00::2]:8000"))
	if tr.kinds() != "headers" {
		t.Errorf("replies %q", tr.kinds())
	}
}

func TestP19SubsetListAndString(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, hint := range []any{
		[]any{"10.0.0.3:8000"}, "10.0.0.3:8000", " 10.0.0.3:8000 ,", []any{"10.9.9.9:8000", "10.0.0.3"}, "garbage,10.0.0.3:8000", []any{7, "10.0.0.3:8000", nil}, "[::ffff:10.0.0.3]:8000",
	} {
		tr := l.run(errReset, chat(fds).subset(hint), reqBody(chatBody, true))
		if set, _, _ := tr.mutation(); set["x-gateway-destination-endpoint"] != "10.0.0.3:8000" {
			t.Errorf("%v: %v", hint, set)
		}
	}
	l.settled()
}

func TestP20SubsetIneligible(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, hint := range []any{[]any{}, "", "10.9.9.9:8000", []any{"10.0.0.1:9"}, "garbage", nil, 7} {
		for name, msgs := range map[string][]message{
			"POST": {chat(fds).subset(hint), reqBody(chatBody, true)},
			"GET":  {open(fds, true, ":method", "GET", ":path", "/v1/models").subset(hint)},
		} {
			tr := l.run(errReset, msgs...)
			checkRefusal(t, tr, 503, ReasonNoEndpoint)
			if tr.err != nil {
				t.Errorf("%s %v: %v", name, hint, tr.err)
			}
		}
	}
	l.settled()
}

// checkRefusal checks that the client got one JSON error and nothing else was said.
func checkRefusal(t *testing.T, tr transcript, status int, reason string) {
	t.Helper()
	im := tr.immediate()
	if im == nil || len(tr.replies) != 1 {
		t.Errorf("replies %q, want an immediate %d", tr.kinds(), status)
		return
	}
	headers := map[string]string{}
	for _, h := range im.GetHeaders().GetSetHeaders() {
		headers[h.Header.Key] = string(h.Header.RawValue)
	}
	if int(im.GetStatus().GetCode()) != status || headers[ReasonHeader] != reason || headers["content-type"] != "application/json" {
		t.Errorf("status %d, headers %v; want %d, %s", im.GetStatus().GetCode(), headers, status, reason)
	}
	if !strings.HasPrefix(string(im.Body), `{"error":{"message":"`) || !strings.HasSuffix(string(im.Body), "}}") {
		t.Errorf("body %s", im.Body)
	}
	if im.Details != reason {
		t.Errorf("details %q", im.Details)
	}
}

func TestP21SubsetFromAnyMessage(t *testing.T) {
	l := newLab(t, labOptions{})
	for name, msgs := range map[string][]message{
		"headers":  {chat(fds).subset("10.0.0.2"), reqBody(chatBody, false), reqBody(nil, true)},
		"body":     {chat(fds), reqBody(chatBody, false).subset("10.0.0.2"), reqBody(nil, true)},
		"end":      {chat(fds), reqBody(chatBody, false), reqBody(nil, true).subset("10.0.0.2")},
		"trailers": {chat(fds), reqBody(chatBody, false), reqTrailers().subset("10.0.0.2")},
		"the last": {chat(fds).subset("10.0.0.1"), reqBody(chatBody, true).subset("10.0.0.2")},
		"buffered": {chat(buffered), reqBody(chatBody, true).subset("10.0.0.2")},
	} {
		tr := l.run(errReset, msgs...)
		if set, _, _ := tr.mutation(); set["x-gateway-destination-endpoint"] != "10.0.0.2:8000" {
			t.Errorf("%s: %v", name, set)
		}
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

func TestP35ResponseTrailersGRPC(t *testing.T) {
	l := newLab(t, labOptions{})
	for status, want := range map[string]fleet.Cause{"0": fleet.Complete, "13": fleet.UpstreamError} {
		l.seen = nil
		tr := l.run(errReset, open(fds, false, ":method", "POST", ":path", "/inference.Service/Call", "content-type", "application/grpc"), reqBody([]byte("\x00\x00\x00\x00\x01x"), true),
			respHeaders(false, "200", "content-type", "application/grpc"), respBody("\x00\x00\x00\x00\x01y", false), respTrailers("grpc-status", status))
		if want := "headers body+$ HEADERS BODY+ TRAILERS"; tr.kinds() != want || tr.err != nil {
			t.Errorf("replies %q, want %q; error %v", tr.kinds(), want, tr.err)
		}
		if o := l.only(); o.Cause != want {
			t.Errorf("grpc-status %s: %v", status, o.Cause)
		}
	}
	l.settled()
}

func TestP36UpstreamErrorStatus(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join(wholeChat(), []message{
		respHeaders(false, "503", "content-type", "text/plain").with("envoy.lb", "x-gateway-destination-endpoint-served", "10.0.0.2:8000"),
		respBody("no healthy upstream", true),
	})...)
	_, answered := tr.bodies()
	equalBytes(t, "response body", answered, []byte("no healthy upstream"))
	if o := l.only(); o.Cause != fleet.UpstreamError || o.Status != 503 || o.Endpoint != "ep-2" || o.Picked != "ep-1" {
		t.Errorf("observed %+v", o)
	}
	if l.count("ended upstream_error") != 1 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}

func TestP37ServedFeedback(t *testing.T) {
	head := respHeaders(false, "200", "content-type", "application/json")
	for name, c := range map[string]struct {
		headers message
		want    string
	}{
		"metadata":             {head.with("envoy.lb", "x-gateway-destination-endpoint-served", "10.0.0.2:8000"), "ep-2"},
		"attribute":            {head.attribute("upstream.address", "10.0.0.3:8000"), "ep-3"},
		"metadata before both": {head.attribute("upstream.address", "10.0.0.3:8000").with("envoy.lb", "x-gateway-destination-endpoint-served", "10.0.0.2:8000"), "ep-2"},
		"nothing":              {head, "ep-1"},
		"unknown address":      {head.attribute("upstream.address", "10.9.9.9:8000"), "ep-1"},
		"no address":           {head.attribute("upstream.address", "garbage"), "ep-1"},
	} {
		l := newLab(t, labOptions{})
		l.run(errReset, join(wholeChat(), []message{c.headers}, ok()[1:])...)
		if o := l.only(); o.Endpoint != c.want || o.Picked != "ep-1" {
			t.Errorf("%s: served by %s, picked %s", name, o.Endpoint, o.Picked)
		}
		l.settled()
	}
}

// TestObservabilityModeIsNotAnswered: nothing that is sent there would be read.
func TestObservabilityModeIsNotAnswered(t *testing.T) {
	l := newLab(t, labOptions{})
	msgs := join(wholeChat(), ok())
	for _, m := range msgs {
		m.msg.ObservabilityMode = true
	}
	if tr := l.run(io.EOF, msgs...); len(tr.replies) != 0 || tr.err != nil {
		t.Errorf("replies %q, error %v", tr.kinds(), tr.err)
	}
	if l.count("began") != 0 {
		t.Error("an observed request was routed")
	}
	l.settled()
}

// TestUnknownMessagesAreIgnored: what the gateway may send one day needs no answer.
func TestUnknownMessagesAreIgnored(t *testing.T) {
	l := newLab(t, labOptions{})
	msgs := []message{}
	for _, m := range join(wholeChat(), ok()) {
		msgs = append(msgs, m, unknown())
	}
	msgs = append([]message{msgs[0]}, msgs[1:]...)
	if tr := l.run(errReset, msgs...); tr.kinds() != "headers body+$ HEADERS BODY+ BODY+$" {
		t.Errorf("replies %q", tr.kinds())
	}
	l.settled()
}

func TestDecisionHeader(t *testing.T) {
	l := newLab(t, labOptions{Options: Options{Answer: Answer{DecisionHeader: true, ClearRouteCache: true}}})
	tr := l.run(errReset, join(wholeChat(), ok())...)
	o := l.only()
	var got string
	for _, r := range tr.replies {
		for _, h := range r.GetResponseHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
			got += h.Header.Key + "=" + string(h.Header.RawValue)
		}
	}
	if got != "x-presage-decision="+o.ID {
		t.Errorf("set %q, decision %s", got, o.ID)
	}
	if !tr.replies[0].GetRequestHeaders().GetResponse().GetClearRouteCache() {
		t.Error("the route cache is not cleared")
	}
	l.server.SetAnswer(Answer{})
	tr = l.run(errReset, join(wholeChat(), ok())...)
	for _, r := range tr.replies {
		if r.GetResponseHeaders().GetResponse() != nil || r.GetRequestHeaders().GetResponse().GetClearRouteCache() {
			t.Errorf("changed answers are not in force: %v", r)
		}
	}
}

// TestLocalReplyOfTheGateway: the gateway may answer by itself while the body is still coming, and
// shows us that answer; the request is then given up.
func TestLocalReplyOfTheGateway(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, chat(fds), reqBody(chatBody[:5], false), respHeaders(false, "504"), respBody("timeout", true), reqBody(chatBody[5:], true))
	if want := "HEADERS BODY+$"; tr.kinds() != want || tr.err != nil {
		t.Errorf("replies %q, want %q; %v", tr.kinds(), want, tr.err)
	}
	if l.count("began") != 0 || l.count("ended client_gone") != 1 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}

// TestEarlyResponse: directions are independent; an answer may come before the request's end.
func TestEarlyResponse(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, open(fds, false, ":method", "PUT", ":path", "/v1/files/x"), reqBody([]byte("a"), false), respHeaders(false, "200"), reqBody([]byte("b"), false), respBody("ok", true), reqBody([]byte("c"), true))
	sent, answered := tr.bodies()
	if want := "headers body+ HEADERS body+ BODY+$ body+$"; tr.kinds() != want || string(sent) != "abc" || string(answered) != "ok" || tr.err != nil {
		t.Errorf("replies %q, want %q; bodies %q %q; error %v", tr.kinds(), want, sent, answered, tr.err)
	}
	l.settled()
}

// TestHalfClosedStreams: the gateway closes its side early. While a full-duplex body is owed the
// stream must not end well: the gateway would send an empty one.
func TestHalfClosedStreams(t *testing.T) {
	l := newLab(t, labOptions{})
	all := join(wholeChat(), ok())
	for n := range all {
		tr := l.run(io.EOF, all[:n]...)
		owing := n == 1 || n == 2 || n == 4 || n == 5
		if (tr.err != nil) != owing {
			t.Errorf("after %d messages: %v, owing %v", n, tr.err, owing)
		}
		l.settled()
	}
}

func TestContextOfTheStreamReachesNobodyLonger(t *testing.T) {
	l := newLab(t, labOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if tr := l.play(ctx, errReset, wholeChat()[:2]...); len(tr.replies) != 0 || !isReset(tr.err) {
		t.Errorf("replies %q, error %v", tr.kinds(), tr.err)
	}
	l.settled()
}
