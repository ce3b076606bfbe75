package extproc

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// The tests named B.. are field bugs, each under its number in the collection.

const ms = time.Millisecond

// streamChat is the start of a streamed chat request that was routed.
func streamChat() []message {
	return []message{chat(fds), reqBody([]byte(`{"model":"demo","stream":true,"messages":[{"role":"user","content":"hello"}]}`), true)}
}

func sseHeaders() message {
	return respHeaders(false, "200", "content-type", "text/event-stream; charset=utf-8")
}

func event(data string) string { return "data: " + data + "\n\n" }

func delta(text string) string {
	return event(`{"choices":[{"index":0,"delta":{"content":"` + text + `"}}]}`)
}

// TestB04ModelNameInAnswers: a model that was renamed on the way to the engine has the client's name
// in the answer, and only there; the answer is read as ever.
func TestB04ModelNameInAnswers(t *testing.T) {
	config := request.Config{Rewrite: map[string]string{"alias": "demo"}}
	body := []byte(`{"model":"alias","stream":true,"messages":[{"role":"user","content":"hello"}]}`)
	token := event(`{"id":"1","model":"demo","choices":[{"index":0,"delta":{"content":"demo"}}]}`)
	answer := token + token + event(`{"model":"demo","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`) + event("[DONE]")
	want := strings.ReplaceAll(answer, `"model":"demo"`, `"model":"alias"`)
	for name, end := range map[string]message{"end": respBody("", true), "trailers": respTrailers("x", "y")} {
		for _, size := range []int{1, 30, 1000} {
			l := newLab(t, labOptions{config: config})
			msgs := []message{chat(fds), reqBody(body, true), respHeaders(false, "200", "content-type", "text/event-stream", "content-length", "7")}
			for b := strings.TrimSuffix(answer, "\n"); len(b) > 0; b = b[min(size, len(b)):] {
				msgs = append(msgs, respBody(b[:min(size, len(b))], false))
			}
			tr := l.run(errReset, append(msgs, end)...)
			_, answered := tr.bodies()
			equalBytes(t, name, answered, []byte(strings.TrimSuffix(want, "\n")))
			if o := l.only(); o.Cause != fleet.Complete || o.OutputTokens != 2 || o.PromptTokens != 9 || o.Model != "alias" {
				t.Errorf("%s: observed %+v", name, o)
			}
			for _, r := range tr.replies {
				if h := r.GetResponseHeaders(); h != nil && !cmp.Equal(h.GetResponse().GetHeaderMutation().GetRemoveHeaders(), []string{"content-length"}) {
					t.Errorf("%s: response headers answered with %v", name, h)
				}
			}
			l.settled()
		}
	}
	// compressed, refused, not renamed: nothing changes
	for _, c := range [][]message{
		{chat(fds), reqBody(body, true), respHeaders(false, "200", "content-type", "application/json", "content-encoding", "gzip"), respBody(`{"model":"demo"}`, true)},
		{chat(fds), reqBody(body, true), respHeaders(false, "400", "content-type", "application/json"), respBody(`{"model":"demo"}`, true)},
		{chat(fds), reqBody(chatBody, true), respHeaders(false, "200", "content-type", "application/json"), respBody(`{"model":"demo"}`, true)},
	} {
		_, answered := newLab(t, labOptions{config: config}).run(errReset, c...).bodies()
		equalBytes(t, "answer", answered, []byte(`{"model":"demo"}`))
	}
}

// TestB11RealStreamInAnyCut sends a real stream of an engine through the service in chunks of every
// size; the client gets the same bytes, and the record says the same.
func TestB11RealStreamInAnyCut(t *testing.T) {
	stream, err := os.ReadFile("answer/testdata/vllm_0_32_chat_stream.sse")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 7, 64, 250, 1023, 5000} {
		l := newLab(t, labOptions{})
		msgs := append(streamChat(), sseHeaders())
		for b := stream; len(b) > 0; b = b[min(size, len(b)):] {
			msgs = append(msgs, respBody(string(b[:min(size, len(b))]), false))
		}
		tr := l.run(errReset, append(msgs, respBody("", true))...)
		_, answered := tr.bodies()
		equalBytes(t, "stream", answered, stream)
		if o := l.only(); o.Cause != fleet.Complete || o.PromptTokens != 11 || o.OutputTokens != 5 || !o.ExactOutput {
			t.Errorf("chunks of %d: observed %+v", size, o)
		}
		l.settled()
	}
}

// TestB13UsageOddities: what engines say of usage ends in the record as said, or as unknown.
func TestB13UsageOddities(t *testing.T) {
	tok := delta("x")
	for name, c := range map[string]struct {
		chunks                 []string
		prompt, cached, output int
		exact                  bool
		bad                    int
	}{
		"a: end marker in the next chunk": {[]string{tok, event(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`), event("[DONE]")}, 7, -1, 3, true, 0},
		"c: none":                         {[]string{tok, tok, tok, event("[DONE]")}, 0, -1, 3, false, 0},
		"d: null":                         {[]string{event(`{"choices":[{"delta":{"content":"x"}}],"usage":null}`), event("[DONE]")}, 0, -1, 1, false, 0},
		"f: a string":                     {[]string{tok, event(`{"usage":"n/a"}`), event("[DONE]")}, 0, -1, 1, false, 0},
		"g: odd types":                    {[]string{tok, event(`{"usage":{"prompt_tokens":"12","prompt_tokens_details":7,"completion_tokens":3.0}}`), event("[DONE]")}, 12, -1, 3, true, 0},
		"h: impossible":                   {[]string{tok, event(`{"usage":{"prompt_tokens":-1,"completion_tokens":1e12}}`), event("[DONE]")}, 0, -1, 1, false, 1},
	} {
		l := newLab(t, labOptions{})
		msgs := append(streamChat(), sseHeaders())
		for _, c := range c.chunks {
			msgs = append(msgs, respBody(c, false))
		}
		l.run(errReset, append(msgs, respBody("", true))...)
		o := l.only()
		if !o.ExactPrompt {
			o.PromptTokens = 0 // an estimate
		}
		if o.Cause != fleet.Complete || o.PromptTokens != c.prompt || o.CachedTokens != c.cached || o.OutputTokens != c.output || o.ExactOutput != c.exact || l.count("bad usage") != c.bad {
			t.Errorf("%s: observed %+v, bad usage %d", name, o, l.count("bad usage"))
		}
	}
	// i: odd stream options in the request
	for _, v := range []string{`{"include_usage":"true"}`, "null", "[]"} {
		l := newLab(t, labOptions{})
		body := []byte(`{"model":"demo","stream_options":` + v + `,"messages":[{"role":"user","content":"hello"}]}`)
		tr := l.run(errReset, chat(fds), reqBody(body, true))
		sent, _ := tr.bodies()
		equalBytes(t, "stream_options "+v, sent, body)
	}
	// j: embeddings have usage without a completion
	l := newLab(t, labOptions{})
	l.run(errReset, open(fds, false, ":method", "POST", ":path", "/v1/embeddings", "content-type", "application/json"), reqBody([]byte(`{"model":"demo","input":"hello"}`), true),
		respHeaders(false, "200", "content-type", "application/json"), respBody(`{"data":[],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":8}}}`, true))
	if o := l.only(); o.PromptTokens != 10 || o.CachedTokens != 8 || o.OutputTokens != features.Unknown || o.ITL != 0 || o.TTFT != 0 {
		t.Errorf("embeddings: observed %+v", o)
	}
}

// TestB14RoleOnlyFirstChunk: the first token is the first content, not the first byte.
func TestB14RoleOnlyFirstChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{})
		l.run(errReset, join(streamChat(), []message{
			sseHeaders().after(12 * ms),
			respBody(event(`{"choices":[{"delta":{"role":"assistant","content":""}}]}`), false).after(15 * ms),
			respBody(": keep-alive\n\n", false).after(700 * ms),
			respBody(delta("A"), false).after(820 * ms),
			respBody(delta("B"), false).after(860 * ms),
			respBody(delta("C"), false).after(905 * ms),
			respBody(event(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`), false).after(906 * ms),
			respBody(event(`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}`), false).after(907 * ms),
			respBody(event("[DONE]"), false).after(908 * ms),
			respBody("", true).after(908 * ms),
		})...)
		o := l.only()
		if o.TTFT != 820*ms || o.ITL != 42500*time.Microsecond || o.E2E != 908*ms {
			t.Errorf("TTFT %v, ITL %v, E2E %v; want 820ms, 42.5ms, 908ms", o.TTFT, o.ITL, o.E2E)
		}
	})
}

// TestB14Sweep: cut events, several in one chunk, no content at all.
func TestB14Sweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			chunks    []message
			ttft, itl time.Duration
			tokens    int
		}{
			"cut before its end":    {[]message{respBody("data: {\"choices\":[{\"delta\":{\"content\":\"A\"}}]}\n", false).after(100 * ms), respBody("\n", false).after(200 * ms)}, 200 * ms, 0, 1},
			"two in one chunk":      {[]message{respBody(delta("A")+delta("B"), false).after(100 * ms), respBody(delta("C"), false).after(140 * ms)}, 100 * ms, 20 * ms, 3},
			"completions, empty":    {[]message{respBody(event(`{"choices":[{"text":""}]}`), false).after(50 * ms), respBody(event(`{"choices":[{"text":"x"}]}`), false).after(90 * ms)}, 90 * ms, 0, 1},
			"no content":            {[]message{respBody(event(`{"choices":[{"delta":{"role":"assistant"}}]}`), false).after(50 * ms)}, 0, 0, features.Unknown},
			"reasoning comes first": {[]message{respBody(event(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`), false).after(30 * ms), respBody(delta("A"), false).after(60 * ms)}, 30 * ms, 30 * ms, 2},
		} {
			l := newLab(t, labOptions{})
			l.run(errReset, join(streamChat(), []message{sseHeaders().after(10 * ms)}, c.chunks, []message{respBody(event("[DONE]"), true).after(time.Second)})...)
			if o := l.only(); o.TTFT != c.ttft || o.ITL != c.itl || o.OutputTokens != c.tokens || o.Cause != fleet.Complete {
				t.Errorf("%s: TTFT %v, ITL %v, %d tokens, %v", name, o.TTFT, o.ITL, o.OutputTokens, o.Cause)
			}
		}
	})
}

// TestB16UsageSpreadOverEvents: Anthropic's and the responses API, streamed and not.
func TestB16UsageSpreadOverEvents(t *testing.T) {
	for name, c := range map[string]struct {
		path, kind             string
		body                   []string
		prompt, cached, output int
	}{
		"messages stream": {"/v1/messages", "text/event-stream", []string{
			"event: message_start\n" + event(`{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":25,"cache_read_input_tokens":16,"output_tokens":1}}}`),
			"event: content_block_delta\n" + event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`),
			"event: message_delta\n" + event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`),
			"event: message_stop\n" + event(`{"type":"message_stop"}`)}, 25, 16, 9},
		"messages document": {"/v1/messages", "application/json", []string{`{"type":"message","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":25,"cache_read_input_tokens":16,"output_tokens":9}}`}, 25, 16, 9},
		"responses stream": {"/v1/responses", "text/event-stream", []string{
			"event: response.output_text.delta\n" + event(`{"type":"response.output_text.delta","delta":"hi"}`) +
				"event: response.completed\n" + event(`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32},"output_tokens":5,"total_tokens":45}}}`)}, 40, 32, 5},
		"responses document": {"/v1/responses", "application/json", []string{`{"object":"response","output":[],"usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32},"output_tokens":5}}`}, 40, 32, 5},
	} {
		l := newLab(t, labOptions{})
		body := `{"model":"demo","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
		if c.path == "/v1/responses" {
			body = `{"model":"demo","input":"hi"}`
		}
		msgs := []message{open(fds, false, ":method", "POST", ":path", c.path, "content-type", "application/json"), reqBody([]byte(body), true), respHeaders(false, "200", "content-type", c.kind)}
		for i, b := range c.body {
			msgs = append(msgs, respBody(b, i == len(c.body)-1))
		}
		l.run(errReset, msgs...)
		if o := l.only(); o.Cause != fleet.Complete || o.PromptTokens != c.prompt || o.CachedTokens != c.cached || o.OutputTokens != c.output {
			t.Errorf("%s: observed %+v", name, o)
		}
	}
}

// TestB17AnswersThatAreNotAClean200: the client gets status and bytes as they were; failures are
// labelled as such and none has a time of a token that never came.
func TestB17AnswersThatAreNotAClean200(t *testing.T) {
	two := delta("x") + delta("y")
	gzip := string([]byte{0x1f, 0x8b, 8, 0, 1, 2, 3, 0xff})
	for name, c := range map[string]struct {
		msgs   []message
		cause  fleet.Cause
		tokens bool // a first token was seen
	}{
		"a: 503 in plain text":   {[]message{respHeaders(false, "503", "content-type", "text/plain"), respBody("no healthy upstream", true)}, fleet.UpstreamError, false},
		"b: error within stream": {[]message{sseHeaders(), respBody(two, false), respBody(event(`{"error":{"message":"engine dead","code":500}}`), false), respBody("", true)}, fleet.UpstreamError, true},
		"c: reset within stream": {[]message{sseHeaders(), respBody(two, false)}, fleet.ClientGone, true}, // client or engine: the gateway does not say
		"c: left at the end":     {[]message{sseHeaders(), respBody(two, false), respBody("data: [DONE]\n\n", false)}, fleet.Complete, true},
		"c: left after finish":   {[]message{sseHeaders(), respBody(two, false), respBody(event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), false)}, fleet.ClientGone, true}, // usage is still to come
		"c: truncated":           {[]message{sseHeaders(), respBody(two, true)}, fleet.Truncated, true},
		"d: 400 in JSON":         {[]message{respHeaders(false, "400", "content-type", "application/json"), respBody(`{"error":{"message":"no"}}`, true)}, fleet.UpstreamError, false},
		"e: gzip":                {[]message{respHeaders(false, "200", "content-type", "application/json", "content-encoding", "gzip"), respBody(gzip, true)}, fleet.Complete, false},
		"f: JSON for a stream":   {[]message{respHeaders(false, "200", "content-type", "application/json"), respBody(`{"choices":[{"message":{"content":"x"}}],"usage":{"completion_tokens":4}}`, true)}, fleet.Complete, false},
		"g: HTML":                {[]message{respHeaders(false, "200", "content-type", "text/html"), respBody("<html>", true)}, fleet.UpstreamError, false},
		"204":                    {[]message{respHeaders(true, "204")}, fleet.Complete, false},
		"301":                    {[]message{respHeaders(true, "301", "location", "/")}, fleet.UpstreamError, false},
		"429":                    {[]message{respHeaders(false, "429", "retry-after", "1", "content-type", "application/json"), respBody("{}", true)}, fleet.UpstreamError, false},
		"103, then 200":          {[]message{respHeaders(false, "103"), respHeaders(false, "200", "content-type", "application/json"), respBody(`{}`, true)}, fleet.Complete, false},
		"headers only, no type":  {[]message{respHeaders(true, "200")}, fleet.Complete, false},
		"empty JSON":             {[]message{respHeaders(true, "200", "content-type", "application/json")}, fleet.Truncated, false},
		"no status":              {[]message{{msg: reqAsResponse()}, respBody("x", true)}, fleet.UpstreamError, false},
		"cut JSON":               {[]message{respHeaders(false, "200", "content-type", "application/json"), respBody(`{"choices":[{"mess`, true)}, fleet.Truncated, false},
	} {
		l := newLab(t, labOptions{})
		tr := l.run(errReset, join(streamChat(), c.msgs)...)
		var want []byte
		for _, m := range c.msgs {
			want = append(want, m.msg.GetResponseBody().GetBody()...)
		}
		_, answered := tr.bodies()
		equalBytes(t, name, answered, want)
		for _, r := range tr.replies {
			if m := r.GetResponseHeaders().GetResponse().GetHeaderMutation(); m != nil {
				t.Errorf("%s: response headers changed: %v", name, m)
			}
		}
		if o := l.only(); o.Cause != c.cause || (o.TTFT > 0) != c.tokens {
			t.Errorf("%s: %v, TTFT %v; want %v", name, o.Cause, o.TTFT, c.cause)
		}
		l.settled()
	}
}

// plain moves header values to the field that older gateways use.
func plain(m message) message {
	for _, h := range m.msg.GetRequestHeaders().GetHeaders().GetHeaders() {
		h.Value, h.RawValue = string(bytes.ToValidUTF8(h.RawValue, nil)), nil
	}
	return m
}
