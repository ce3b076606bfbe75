package request

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestB03Paths: which API a path is, and what is kept of it.
func TestB03Paths(t *testing.T) {
	for target, want := range map[string]API{
		"/v1/chat/completions":               Chat,
		"/v1/chat/completions/":              Chat,
		"/v1/chat/completions?a=b":           Chat,
		"/v1/chat/completions/?a=/v1/models": Chat,
		"/v1/chat/completions/render":        Chat,
		"/proxy/v1/chat/completions":         Chat,
		"/a/v1/b/v1/completions":             Completions,
		"/v1/completions":                    Completions,
		"/v1/completions/render?x":           Completions,
		"/v1/responses":                      Responses,
		"/v1/embeddings":                     Embeddings,
		"/v1/messages?beta=true":             Messages,
		"/v1/messages/render":                Messages,
		"/v1/messages/count_tokens":          Opaque,
		"/v1/messages/batches":               Opaque,
		"/v1/chat/completions/batch":         Opaque,
		"/v1/responses/resp_1/cancel":        Opaque,
		"/V1/CHAT/COMPLETIONS":               Opaque,
		"/chat/completions":                  Opaque,
		"/xv1/chat/completions":              Opaque,
		"/v1/chat/completionsx":              Opaque,
		"/v1/chat//completions":              Opaque,
		"/v1/rerank":                         Opaque,
		"/v1/models?x=/v1/completions":       Opaque,
		"/v1/audio/transcriptions":           Audio,
		"/proxy/v1/audio/translations":       Audio,
		"/v1/audio/transcriptions/x":         Opaque,
		"/v1/audio/":                         Audio,
		"/":                                  Opaque,
		"":                                   Opaque,
		"*":                                  Opaque,
	} {
		path, api := route([]byte(target))
		if wantPath, _, _ := strings.Cut(target, "?"); api != want || path != wantPath {
			t.Errorf("%s: %v, path %q, want %v", target, api, path, want)
		}
	}
	if path, _ := route(bytes.Repeat([]byte("/long"), 1000)); len(path) != maxPath {
		t.Errorf("%d bytes of a path kept", len(path))
	}
}

// TestB03LittleToParse: requests with little or nothing to parse are routed, or refused for what
// they lack; the head alone decides where it can.
func TestB03LittleToParse(t *testing.T) {
	const hi = `{"model":"m","prompt":"hi"}`
	type want struct {
		api    API
		body   bool
		status int
	}
	h := func(pairs ...string) *Head {
		var h Head
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], []byte(pairs[i+1]))
		}
		return &h
	}
	p := parser(t, Config{})
	for name, c := range map[string]struct {
		head *Head
		end  bool
		want want
	}{
		"GET models":      {h(":method", "GET", ":path", "/v1/models"), true, want{Opaque, false, 0}},
		"HEAD":            {h(":method", "HEAD", ":path", "/v1/models"), true, want{Opaque, false, 0}},
		"GET chat":        {h(":method", "GET", ":path", chatPath), true, want{Opaque, false, 0}},
		"OPTIONS":         {h(":method", "OPTIONS", ":path", chatPath), true, want{Opaque, false, 0}},
		"CONNECT":         {h(":method", "CONNECT"), false, want{Opaque, false, 0}},
		"nothing":         {h(), true, want{Opaque, false, 0}},
		"websocket":       {h(":method", "GET", ":path", "/v1/realtime", "upgrade", "websocket"), false, want{Opaque, false, 0}},
		"POST upgrade":    {h(":method", "POST", ":path", chatPath, "upgrade", "x"), false, want{Opaque, false, 0}},
		"rerank":          {h(":method", "POST", ":path", "/v1/rerank", "content-type", "application/json"), false, want{Opaque, false, 0}},
		"count_tokens":    {h(":method", "POST", ":path", "/v1/messages/count_tokens", "content-type", "application/json"), false, want{Opaque, false, 0}},
		"no body":         {h(":method", "POST", ":path", chatPath, "content-type", "application/json"), true, want{Chat, false, 400}},
		"json":            {h(":method", "POST", ":path", chatPath, "content-type", "application/json"), false, want{Chat, true, 0}},
		"json charset":    {h(":method", "POST", ":path", chatPath, "content-type", "Application/JSON ; charset=utf-8"), false, want{Chat, true, 0}},
		"+json":           {h(":method", "POST", ":path", chatPath, "content-type", "application/vnd.api+json"), false, want{Chat, true, 0}},
		"no type":         {h(":method", "POST", ":path", chatPath), false, want{Chat, true, 0}},
		"form type":       {h(":method", "POST", ":path", chatPath, "content-type", "application/x-www-form-urlencoded"), false, want{Opaque, false, 0}},
		"multipart chat":  {h(":method", "POST", ":path", chatPath, "content-type", "multipart/form-data; boundary=X"), false, want{Opaque, false, 0}},
		"text type":       {h(":method", "POST", ":path", chatPath, "content-type", "text/plain"), false, want{Opaque, false, 0}},
		"gzip":            {h(":method", "POST", ":path", chatPath, "content-encoding", "gzip"), false, want{Opaque, false, 0}},
		"identity":        {h(":method", "POST", ":path", chatPath, "content-encoding", "Identity"), false, want{Chat, true, 0}},
		"audio":           {h(":method", "POST", ":path", "/v1/audio/transcriptions", "content-type", `multipart/form-data; boundary="a b"`), false, want{Audio, true, 0}},
		"audio unbounded": {h(":method", "POST", ":path", "/v1/audio/transcriptions", "content-type", "multipart/form-data"), false, want{Opaque, false, 0}},
		"audio in JSON":   {h(":method", "POST", ":path", "/v1/audio/speech", "content-type", "application/json"), false, want{Opaque, false, 0}},
		"audio no body":   {h(":method", "POST", ":path", "/v1/audio/speech", "content-type", "multipart/form-data; boundary=X"), true, want{Opaque, false, 0}},
	} {
		var r Request
		body, err := p.Head(&r, c.head, c.end)
		got := want{r.API, body, 0}
		var e *Error
		if errors.As(err, &e) {
			got.status = e.Status
		}
		if got != c.want || r.Choices != 1 {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}

	for in, code := range map[string]string{
		`{"prompt":"hi"}`:             "missing_model",
		`{"model":"","prompt":"hi"}`:  "missing_model",
		`{"model":null,"prompt":"x"}`: "invalid_type",
		`{"model":7,"prompt":"hi"}`:   "invalid_type",
		`{"model":["a"]}`:             "invalid_type",
		`{}`:                          "missing_model",
	} {
		if _, err := try(t, Config{}, completionPath, in); err == nil || err.Status != 400 || err.Code != code || err.Param != "model" {
			t.Errorf("%s: %v", in, err)
		}
	}
	if r := must(t, Config{}, "/proxy"+messagesPath+"?beta=true", hi); r.API != Messages || r.Path != "/proxy"+messagesPath {
		t.Errorf("messages with a query: %v %s", r.API, r.Path)
	}
}

// TestGzipRequest: compressed bodies pass unread, or are refused where so configured.
func TestGzipRequest(t *testing.T) {
	h := head(messagesPath, "content-encoding", "gzip")
	var r Request
	if err := parser(t, Config{}).Parse(&r, h, []byte("\x1f\x8b\x08")); err != nil || r.API != Opaque || r.Model != "" {
		t.Errorf("%v, %v", r.API, err)
	}
	r.Reset()
	err := parser(t, Config{RefuseEncoded: true}).Parse(&r, h, []byte("\x1f\x8b\x08"))
	var e *Error
	if !errors.As(err, &e) || e.Status != 415 || e.Param != "content-encoding" || r.API != Messages {
		t.Errorf("%v, want 415", err)
	}
}

// TestSLOHeaders: positive finite milliseconds, clamped; anything else is ignored and counted; the
// first of two names wins.
func TestSLOHeaders(t *testing.T) {
	p := parser(t, Config{})
	read := func(pairs ...string) *Request {
		var r Request
		if _, err := p.Head(&r, head("/", pairs...), true); err != nil {
			t.Fatal(err)
		}
		return &r
	}
	for in, want := range map[string]time.Duration{
		"500": 500 * time.Millisecond, "0.5": time.Millisecond, "1e-30": time.Millisecond, "250.5": 250500 * time.Microsecond,
		"3600000": time.Hour, "3600001": time.Hour, "1e300": time.Hour, "9e3": 9 * time.Second, "+20": 20 * time.Millisecond,
		"0": -1, "-0": -1, "-5": -1, "NaN": -1, "nan": -1, "Inf": -1, "+Inf": -1, "-Infinity": -1, "1e999": -1, "": -1, "5\t": -1, "5ms": -1,
		"0x10": -1, "1_0": -1, "5,6": -1, strings.Repeat("1", 40): -1, "5\x00": -1, "1e": -1,
	} {
		for _, name := range []string{"x-llm-d-slo-ttft-ms", "x-slo-ttft-ms", "X-SLO-TTFT-MS"} {
			r, ignored := read(name, in), 0
			if want < 0 {
				ignored = 1
			}
			if r.SLO.TTFT != max(want, 0) || r.SLO.ITL != 0 || r.Ignored != ignored {
				t.Errorf("%s %q: %+v, %d ignored", name, in, r.SLO, r.Ignored)
			}
		}
		if r := read("x-llm-d-slo-tpot-ms", in); r.SLO.ITL != max(want, 0) || r.SLO.TTFT != 0 {
			t.Errorf("tpot %q: %+v", in, r.SLO)
		}
	}
	r := read("x-slo-ttft-ms", "1", "x-llm-d-slo-ttft-ms", "2", "x-llm-d-slo-ttft-ms", "3", "x-slo-tpot-ms", "4")
	if r.SLO.TTFT != 2*time.Millisecond || r.SLO.ITL != 4*time.Millisecond || r.Ignored != 0 {
		t.Errorf("aliases: %+v", r.SLO)
	}
	if r := read("x-llm-d-slo-ttft-ms", "bad", "x-slo-ttft-ms", "4"); r.SLO.TTFT != 0 || r.Ignored != 1 {
		t.Errorf("a bad first name: %+v", r.SLO)
	}
}

// TestB48Headers: headers of clients choose nothing but what they may: an unknown objective has the
// default priority, and control headers are known as such in any spelling.
func TestB48Headers(t *testing.T) {
	p := parser(t, Config{Priorities: map[string]int{"gold": 10, "batch": -5, "": 7}})
	for in, want := range map[string]int{"gold": 10, "batch": -5, "platinum": 0, "GOLD": 0} {
		var r Request
		if _, err := p.Head(&r, head("/", "x-gateway-inference-objective", in), true); err != nil || r.Priority != want {
			t.Errorf("objective %q: priority %d, want %d", in, r.Priority, want)
		}
	}
	var r Request
	_, _ = p.Head(&r, head("/", "x-llm-d-inference-objective", "gold", "x-gateway-inference-objective", "batch"), true)
	if r.Priority != -5 {
		t.Errorf("two names: priority %d, want that of the gateway's", r.Priority)
	}
	for name, want := range map[string]bool{
		"x-gateway-destination-endpoint": true, "X-Gateway-Destination-Endpoint": true, "x-gateway-destination-endpoint-subset": true,
		"x-gateway-model-name-rewrite": true, "x-gateway-inference-objective": true, "x-llm-d-request-dropped-reason": true, "X-SLO-TTFT-MS": true,
		"x-session-id": false, "x-request-id": false, "traceparent": false, "authorization": false, "x-gateway": false, "": false,
	} {
		if Control(name) != want {
			t.Errorf("Control(%q) = %v", name, !want)
		}
	}
}

// TestB49Untrusted: no string of a client is kept but short and printable, or as a hash; different
// ones stay different; and no model has an impossible name.
func TestB49Untrusted(t *testing.T) {
	seen := map[string]string{}
	for _, in := range []string{
		"r-1", "a\r\nx-evil: 1", "a\r\nx-evil: 2", strings.Repeat("x", 128), strings.Repeat("x", 4096), strings.Repeat("x", 4095) + "y",
		"caf\u00e9", "\x00", "a b", "tab\t", "\xff\xfe", "\x7f",
	} {
		var r Request
		if _, err := parser(t, Config{}).Head(&r, head("/", "x-request-id", in, "x-session-id", in, "x-gateway-inference-fairness-id", in), true); err != nil {
			t.Fatal(err)
		}
		if r.ID != r.Session || r.ID != r.Tenant || len(r.ID) > maxLabel || len(r.ID) == 0 {
			t.Errorf("%.20q: id %q, session %q, tenant %q", in, r.ID, r.Session, r.Tenant)
		}
		for _, c := range []byte(r.ID) {
			if c < 0x20 || c > 0x7e {
				t.Errorf("%.20q: %q is kept", in, r.ID)
			}
		}
		if other, dup := seen[r.ID]; dup {
			t.Errorf("%.20q and %.20q are the same", in, other)
		}
		seen[r.ID] = in
	}
	if r := must(t, small, chatPath, `{"model":"m","user":"`+strings.Repeat("\\u00e9", 500)+`"}`); !strings.HasPrefix(r.Session, "~") {
		t.Errorf("session %q", r.Session)
	}
	long, short := must(t, small, chatPath, `{"model":"m","user":"`+strings.Repeat("u", 600)+`"}`), must(t, small, chatPath, `{"model":"m","user":"evil\n"}`)
	if long.Session == short.Session || len(long.Session) != 17 || len(short.Session) != 17 {
		t.Errorf("sessions %q and %q", long.Session, short.Session)
	}

	for name, ok := range map[string]bool{
		"../../etc/passwd": true, "/abs/x": true, "org/name": true, "https://evil.example.test/m": true, // names, never paths
		`m\u0000x`: false, `m\nlevel=error msg=forged`: false, `m\u007f`: false, `m\u0085`: false, `\ud83d`: false, `\ud83d\ude00`: true,
		strings.Repeat("m", 512): true, strings.Repeat("m", 513): false, strings.Repeat("m", 10000): false, strings.Repeat(`\u006d`, 512): true,
	} {
		_, err := try(t, Config{}, chatPath, `{"model":"`+name+`"}`)
		if (err == nil) != ok {
			t.Errorf("%.40q: %v", name, err)
		}
		if err != nil && (err.Code != "invalid_model" || strings.Contains(err.Error(), "forged")) {
			t.Errorf("%.40q: %v", name, err)
		}
	}
}

// TestHeadKeepsNothing: values may change once Head has returned.
func TestHeadKeepsNothing(t *testing.T) {
	value := []byte("s-1")
	var h Head
	for _, name := range []string{":path", "x-session-id", "x-request-id", "x-gateway-inference-fairness-id"} {
		h.Set(name, value)
	}
	h.Set("x-unknown", []byte("x"))
	var r Request
	if _, err := parser(t, Config{}).Head(&r, &h, true); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(r.Path, r.Session, r.ID, r.Tenant)
	clear(value)
	if after := fmt.Sprint(r.Path, r.Session, r.ID, r.Tenant); after != before {
		t.Errorf("%q became %q", before, after)
	}
	h.Reset()
	if h.path != nil || h.session != nil {
		t.Error("Reset left something")
	}
}

func TestNewParser(t *testing.T) {
	for _, c := range []Config{
		{BlockSize: -1}, {BlockSize: 1 << 20}, {Rewrite: map[string]string{"a": ""}}, {Rewrite: map[string]string{"a": "*"}},
		{Rewrite: map[string]string{"*": "b\n"}},
	} {
		if _, err := NewParser(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	c := Config{Rewrite: map[string]string{"a": "b"}, Priorities: map[string]int{"gold": 1}}
	p := parser(t, c)
	c.Rewrite["a"], c.Priorities["gold"] = "c", 2
	if p.c.Rewrite["a"] != "b" || p.c.Priorities["gold"] != 1 {
		t.Error("the parser changes with its configuration")
	}
}
