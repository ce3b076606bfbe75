package extproc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

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
	l.run(errReset, chat(none), respHeaders(false, "503"))
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
