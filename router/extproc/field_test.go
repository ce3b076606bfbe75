package extproc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
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

// TestB31ClientLeaves: every way of leaving releases what was held, exactly once.
func TestB31ClientLeaves(t *testing.T) {
	all := join(streamChat(), []message{sseHeaders(), respBody(delta("x"), false), respBody(event("[DONE]"), false), respBody("", true)})
	for n := range len(all) {
		for _, end := range []error{errReset, io.EOF} {
			l := newLab(t, labOptions{})
			l.run(end, all[:n]...)
			l.settled()
			switch {
			case n == 0:
				if l.count("ended") != 0 {
					t.Errorf("a stream without request was counted: %v", l.stats)
				}
			case n == 1: // never routed
				if len(l.observations()) != 0 || l.count("ended client_gone") != 1 {
					t.Errorf("unrouted request: %v", l.stats)
				}
			default:
				if o := l.only(); o.Cause != fleet.ClientGone || l.count("ended client_gone") != 1 {
					t.Errorf("after %d messages: %v, %v", n, o.Cause, l.stats)
				}
			}
		}
	}
}

// TestB31ClientLeavesWhileQueued: a request held back by admission is never dispatched once its
// client has gone.
func TestB31ClientLeavesWhileQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{Options: Options{Admission: admit(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})}})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(50*ms, cancel)
		start := time.Now()
		tr := l.play(ctx, errReset, wholeChat()...)
		if d := time.Since(start); d != 50*ms {
			t.Errorf("left after %v", d)
		}
		if l.count("began") != 0 || l.count("ended client_gone") != 1 || len(tr.replies) != 0 {
			t.Errorf("stats %v, replies %q", l.stats, tr.kinds())
		}
		l.settled()
	})
}

type admit func(ctx context.Context) error

func (a admit) Admit(ctx context.Context, _ *request.Request, _ int) error { return a(ctx) }

// TestB31SilenceIsFinite: a request nothing is heard of is released by its age or its silence, and
// its bytes still pass should it speak again.
func TestB31SilenceIsFinite(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		at     time.Duration
	}{
		"idle": {Limits{Idle: time.Minute}, time.Minute},
		"age":  {Limits{MaxAge: 30 * time.Second}, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, labOptions{Options: Options{Limits: c.limits}})
			done := make(chan transcript)
			go func() {
				done <- l.run(errReset, join(streamChat(), []message{sseHeaders().after(2 * time.Hour), respBody(delta("x"), false), respBody(event("[DONE]"), true)})...)
			}()
			time.Sleep(c.at - 1)
			synctest.Wait()
			if n := l.inflight(); n != 1 {
				t.Errorf("%s: %d in flight before the limit", name, n)
			}
			time.Sleep(2)
			synctest.Wait()
			if n := l.inflight(); n != 0 {
				t.Errorf("%s: %d in flight after the limit", name, n)
			}
			if o := l.only(); o.Cause != fleet.Expired {
				t.Errorf("%s: %v", name, o.Cause)
			}
			if tr := <-done; tr.kinds() != "headers body+$ HEADERS BODY+ BODY+$" || tr.err != nil {
				t.Errorf("%s: replies %q, error %v", name, tr.kinds(), tr.err)
			}
			l.only()
			l.settled()
		})
	}
}

// TestB32DecrementsHappenOnce follows one address through two instances.
func TestB32DecrementsHappenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, labOptions{fleet: []string{"10.0.0.1:8000"}})
		var wg sync.WaitGroup
		start := func(msgs ...message) {
			wg.Add(1)
			go func() { defer wg.Done(); l.run(errReset, msgs...) }()
		}
		now := func(want int) {
			t.Helper()
			synctest.Wait()
			if n := l.inflight(); n != want {
				t.Errorf("in flight %d, want %d", n, want)
			}
		}
		endpoint := func() *fleet.Endpoint {
			var s fleet.Snapshot
			l.fleet.Snapshot(time.Now(), &s)
			return s.States[0].Endpoint
		}
		a := endpoint()
		start(join(streamChat(), []message{sseHeaders(), respBody(event("[DONE]"), true).after(4 * time.Second), unknown().after(5 * time.Second)})...)
		now(1)
		if _, err := l.fleet.Sync(time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		b := *a
		if _, err := l.fleet.Sync(time.Now(), []*fleet.Endpoint{&b}); err != nil {
			t.Fatal(err)
		}
		now(0) // the new instance inherits nothing
		start(join(streamChat(), []message{sseHeaders().after(6 * time.Second), respBody(delta("x"), false), respBody(event("[DONE]"), true).after(7 * time.Second)})...)
		now(1)
		time.Sleep(4500 * ms) // the first request's answer ends, then its stream
		now(1)
		time.Sleep(1000 * ms)
		now(1)
		time.Sleep(1000 * ms) // the second one's answer is under way
		now(1)
		time.Sleep(1000 * ms)
		now(0)
		wg.Wait()
		l.settled()
		if n := len(l.observations()); n != 2 {
			t.Errorf("%d observations", n)
		}
	})
}

// TestB33EqualRequestIDs: streams share nothing, whatever their clients call them.
func TestB33EqualRequestIDs(t *testing.T) {
	l := newLab(t, labOptions{})
	for _, id := range [][]string{{"x-request-id", "r-1"}, nil, {"x-request-id", ""}} {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				body := fmt.Appendf(nil, `{"model":"demo","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat(string(rune('a'+i)), 5000))
				msgs := []message{chat(fds, id...)}
				for b := body; len(b) > 0; b = b[min(len(b), 100):] {
					msgs = append(msgs, reqBody(b[:min(len(b), 100)], false))
				}
				msgs = append(msgs, reqBody(nil, true), sseHeaders())
				answer := strings.Repeat(delta(string(rune('A'+i))), 50) + event(fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":50}}`, 100+i)) + event("[DONE]")
				for b := answer; len(b) > 0; b = b[min(len(b), 60):] {
					msgs = append(msgs, respBody(b[:min(len(b), 60)], false))
				}
				tr := l.run(errReset, append(msgs, respBody("", true))...)
				sent, answered := tr.bodies()
				equalBytes(t, "request body", sent, body)
				equalBytes(t, "response body", answered, []byte(answer))
			}()
		}
		wg.Wait()
	}
	prompts := map[int]int{}
	for _, o := range l.observations() {
		if o.Cause != fleet.Complete || o.OutputTokens != 50 {
			t.Errorf("observed %+v", o)
		}
		prompts[o.PromptTokens]++
	}
	for i := range 8 {
		if prompts[100+i] != 3 {
			t.Errorf("prompts %v", prompts)
		}
	}
	l.settled()
}

// TestB48ClientSendsTheRoutingHeader: internal headers of clients reach nobody, in no mode and in no
// spelling; those of engines do not reach the client.
func TestB48ClientSendsTheRoutingHeader(t *testing.T) {
	evil := []string{
		"x-gateway-destination-endpoint", "10.0.0.99:8000", "X-Gateway-Destination-Endpoint", "10.0.0.98:8000,10.0.0.97:8000",
		"x-gateway-destination-endpoint-subset", "10.0.0.3", "x-gateway-destination-endpoint-served", "10.0.0.99:1", "x-gateway-model-name-rewrite", "other",
		"x-gateway-inference-objective", strings.Repeat("o", 8192), "x-prefiller-host-port", "10.0.0.99:8000", "x-data-parallel-host-port", "10.0.0.99:1", "x-presage-decision", "d-1\r\nx-evil: 1",
		"x-llm-d-slo-ttft-ms", "1", "x-harmless", "stays", "x-gateway-destination-endpoint", "",
	}
	var names []string
	for i := 0; i < len(evil); i += 2 {
		if evil[i] != "x-harmless" {
			names = append(names, evil[i])
		}
	}
	for name, msgs := range map[string][]message{
		"normal":    {chat(fds, evil...), reqBody(chatBody, true)},
		"opaque":    {open(fds, false, append([]string{":method", "POST", ":path", "/v1/other"}, evil...)...), reqBody([]byte("x"), true)},
		"buffered":  {chat(buffered, evil...), reqBody(chatBody, true)},
		"streamed":  {chat(streamed, evil...), reqBody(chatBody, true)},
		"none":      {chat(none, evil...)},
		"get":       {open(fds, true, append([]string{":method", "GET", ":path", "/v1/models"}, evil...)...)},
		"plain too": {plain(chat(fds, evil...)), reqBody(chatBody, true)},
	} {
		l := newLab(t, labOptions{})
		tr := l.run(errReset, msgs...)
		set, remove, metadata := tr.mutation()
		if !cmp.Equal(set, map[string]string{"x-gateway-destination-endpoint": "10.0.0.1:8000"}) || metadata != "10.0.0.1:8000" {
			t.Errorf("%s: set %v, metadata %q", name, set, metadata)
		}
		for _, n := range names {
			if !containsString(remove, n) {
				t.Errorf("%s: %s is not removed", name, n)
			}
		}
		if containsString(remove, "x-harmless") {
			t.Errorf("%s: a harmless header is removed", name)
		}
	}
	// refusals: the client's value must reach nobody, so nothing but the answer may be sent
	for name, l := range map[string]*lab{
		"no endpoint": newLab(t, labOptions{fleet: []string{}}),
		"saturated":   newLab(t, labOptions{policy: first{before: func(*router.Query) error { return router.ErrSaturated }}}),
	} {
		if tr := l.run(errReset, chat(fds, evil...), reqBody(chatBody, true)); tr.immediate() == nil || len(tr.replies) != 1 {
			t.Errorf("%s: replies %q", name, tr.kinds())
		}
	}
	if tr := newLab(t, labOptions{}).run(errReset, chat(fds, evil...), reqBody([]byte("no json"), true)); tr.immediate() == nil || len(tr.replies) != 1 {
		t.Errorf("bad body: replies %q", tr.kinds())
	}
	// responses
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join(wholeChat(), []message{respHeaders(true, "204", "x-gateway-destination-endpoint", "10.0.0.1:8000", "set-cookie", "a", "set-cookie", "b")})...)
	for _, r := range tr.replies {
		if h := r.GetResponseHeaders(); h != nil && !cmp.Equal(h.GetResponse().GetHeaderMutation().GetRemoveHeaders(), []string{"x-gateway-destination-endpoint"}) {
			t.Errorf("response: %v", h)
		}
	}
}

func containsString(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// plain moves header values to the field that older gateways use.
func plain(m message) message {
	for _, h := range m.msg.GetRequestHeaders().GetHeaders().GetHeaders() {
		h.Value, h.RawValue = string(bytes.ToValidUTF8(h.RawValue, nil)), nil
	}
	return m
}
