package request

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestBadJSON: broken bodies are refused with 400 and the place.
func TestBadJSON(t *testing.T) {
	nest := func(n int) string {
		return `{"model":"m","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for in, want := range map[string]string{
		``:                                    "body: empty",
		` `:                                   "body: empty",
		"\n\t":                                "body: empty",
		`null`:                                "body: not a JSON object",
		`[]`:                                  "body: not a JSON object",
		`"x"`:                                 "body: not a JSON object",
		`hello`:                               "body: not a JSON object",
		`{"model":"m","prompt":"hi"`:          "body: breaks off after 26 bytes",
		`{"model":"m","prompt":"hi`:           "body: breaks off after 25 bytes",
		`{"model":"m"`:                        "body: breaks off after 12 bytes",
		`{"model":"m",`:                       "body: breaks off after 13 bytes",
		`{`:                                   "body: breaks off after 1 bytes",
		`{"model":"m"} {}`:                    "body: goes on at byte 14",
		`{"model":"m"}x`:                      "body: goes on at byte 13",
		`{} {}`:                               "body: goes on at byte 3",
		`{"model":"m",}`:                      "body: byte 13 is no JSON",
		`{"model" "m"}`:                       "body: byte 9 is no JSON",
		`{"model":'m'}`:                       "body: byte 9 is no JSON",
		`{"model":"m" "x":1}`:                 "body: byte 13 is no JSON",
		`{model:"m"}`:                         "body: byte 1 is no JSON",
		"{\"model\":\"m\",\"x\":\"a\nb\"}":    "body: byte 19 is no JSON",
		"{\"model\":\"m\xff\"}":               "body: byte 11 is no UTF-8",
		"{\"model\":\"m\",\"\xff\":1}":        "body: byte 14 is no UTF-8",
		`{"model":"m","a":NaN}`:               "body: byte 17 is no JSON",
		nest(200):                             "body: byte",
		nest(600):                             "body: byte",
		`{"model":"m","model":"n"}`:           "model: given twice",
		`{"model":"m","mod\u0065l":"n"}`:      "model: given twice",
		`{"model":"m","prompt":1,"prompt":1}`: "prompt: given twice",
		`{"model":"m","stream":true,"stream":false}`:  "stream: given twice",
		`{"model":"m","max_tokens":1,"max_tokens":2}`: "max_tokens: given twice",
	} {
		_, err := try(t, Config{}, completionPath, in)
		if err == nil || err.Status != 400 || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", in, err, want)
		}
	}
	if _, err := try(t, Config{}, completionPath, nest(600)); err == nil || err.Code != "too_deep" {
		t.Errorf("600 levels: %v", err)
	}
	for _, fine := range []string{
		nest(120),
		"\r\n\t {\"model\":\"m\"} \r\n",
		`{"model":"m","x":1,"x":2,"x":3}`,
		`{"model":"m","messages":1,"messages":2,"input":{}}`, // not read here
		`{"x":{"model":"a","model":"b"},"model":"m"}`,
		`{"model":"m","seed":9007199254740995,"y":1e400,"z":-0}`,
	} {
		must(t, Config{}, completionPath, fine)
	}
}

// TestEscapedModel: names and values may be written with escapes.
func TestEscapedModel(t *testing.T) {
	for in, want := range map[string]string{
		`{"mod\u0065l":"a/b"}`: "a/b", `{"model":"a\/b"}`: "a/b", `{"\u006d\u006F\u0064\u0065\u006c":"\u0061/b"}`: "a/b",
	} {
		if r := must(t, Config{}, chatPath, in); r.Model != want {
			t.Errorf("%s: model %q, want %q", in, r.Model, want)
		}
	}
}

// TestReuse: a request used again is as fresh as a new one, and a failed parse leaves nothing.
func TestReuse(t *testing.T) {
	p := parser(t, small)
	var r Request
	steps := []struct{ path, body string }{
		{chatPath, `{"model":"m","stream":true,"user":"u","max_tokens":3,"n":2,"messages":[{"role":"user","content":["` + long("a", 50) + `",{"type":"image"}]}]}`},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":7}]}`},
		{chatPath, `{"model":"m","messages":[{"content":"a","content":"b","role":"user"},{"role":"assistant","content":"c"}],"tools":[1]}`},
		{completionPath, `{"model":"n","prompt":[1,2,3,4,5,6]}`},
		{completionPath, `{"model":"n"`},
		{responsesPath, `{"model":"n","input":"hello, world"}`},
		{"/v1/models", `{}`},
	}
	for range 2 {
		for _, s := range steps {
			r.Reset()
			got := p.Parse(&r, head(s.path), []byte(s.body))
			var fresh Request
			want := p.Parse(&fresh, head(s.path), []byte(s.body))
			if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
				t.Errorf("%s: %v, fresh %v", s.body, got, want)
			}
			if got != nil {
				continue
			}
			r.AddAnswer([]byte(long("answer", 30)))
			fresh.AddAnswer([]byte(long("answer", 30)))
			if g, w := shown(t, &r), shown(t, &fresh); g != w {
				t.Errorf("%s:\n%s\nfresh\n%s", s.body, g, w)
			}
		}
	}
}

// shown is a request as JSON, with its continued chain.
func shown(t *testing.T, r *Request) string {
	t.Helper()
	b, err := json.Marshal(struct {
		*Request
		Continued []uint64
	}{r, append([]uint64{}, r.Chain()...)})
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), `"Blocks":null`, `"Blocks":[]`)
}

// TestErrorBody: refusals are JSON in the shape of the API, whatever the message holds.
func TestErrorBody(t *testing.T) {
	for api, want := range map[API]string{
		Chat:     `{"error":{"message":"model: missing \"x\"\n","type":"invalid_request_error","param":"model","code":"missing_model"}}`,
		Messages: `{"type":"error","error":{"message":"model: missing \"x\"\n","type":"invalid_request_error","param":"model","code":"missing_model"}}`,
	} {
		e := refuse("model", "missing_model", "missing \"x\"\n")
		if got := string(e.AppendBody(nil, api)); got != want {
			t.Errorf("%v: %s", api, got)
		}
	}
	for _, c := range []struct {
		e    Error
		api  API
		kind string
	}{
		{Error{Status: 404}, Chat, "not_found_error"},
		{Error{Status: 413}, Chat, "invalid_request_error"},
		{Error{Status: 413}, Messages, "request_too_large"},
		{Error{Status: 415}, Chat, "invalid_request_error"},
		{Error{Status: 429}, Chat, "rate_limit_error"},
		{Error{Status: 500}, Chat, "server_error"},
		{Error{Status: 500}, Messages, "api_error"},
		{Error{Status: 503}, Opaque, "service_unavailable_error"},
		{Error{Status: 503}, Messages, "overloaded_error"},
		{Error{Status: 503, Type: "mine"}, Messages, "mine"},
	} {
		c.e.Message = "it is \xff no \u2028 good"
		var got struct {
			Error struct {
				Message, Type string
				Param, Code   *string
			}
		}
		if err := json.Unmarshal(c.e.AppendBody(nil, c.api), &got); err != nil {
			t.Fatal(err)
		}
		if got.Error.Type != c.kind || got.Error.Param != nil || got.Error.Code != nil || got.Error.Message != "it is \ufffd no \u2028 good" {
			t.Errorf("%d for %v: %+v", c.e.Status, c.api, got.Error)
		}
	}
	var e *Error
	if !errors.As(error(&Error{Message: "x"}), &e) || e.Error() != "x" {
		t.Error("no error")
	}
}

// TestB06Body: a body of 5 MiB is read as any other.
func TestB06Body(t *testing.T) {
	text := strings.Repeat(`line of text\n`, 5<<20/14)
	r := must(t, Config{}, chatPath, `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)
	if want := 5 << 20 / 14 * 13; r.PromptBytes != want || len(r.Blocks) != want/256 {
		t.Errorf("%d bytes, %d blocks, want %d bytes", r.PromptBytes, len(r.Blocks), want)
	}
}

func TestAPIString(t *testing.T) {
	seen := map[string]bool{}
	for a := Opaque; a <= Audio+1; a++ {
		if s := a.String(); seen[s] || s == "" {
			t.Errorf("API %d is %q", a, s)
		} else {
			seen[s] = true
		}
	}
}

// TestFields: in every API, whatever is read may be given but once, and whatever changes the prompt
// changes the key from the first block on; the same names mean nothing where they are not read.
func TestFields(t *testing.T) {
	paths := map[API]string{Chat: chatPath, Completions: completionPath, Responses: responsesPath, Embeddings: embeddingPath, Messages: messagesPath}
	prompts := map[API]string{
		Chat: `"messages":[{"content":"hello"}]`, Completions: `"prompt":"hello"`, Responses: `"input":"hello"`, Embeddings: `"input":"hello"`, Messages: `"messages":[{"content":"hello"}]`,
	}
	for name, meaning := range fields {
		for api, path := range paths {
			f := meaning[api]
			rest := prompts[api]
			if strings.HasPrefix(rest, `"`+name+`"`) {
				rest = `"x":1`
			}
			twice := `{"model":"m","` + name + `":null,"` + name + `":null,` + rest + `}`
			if name == "model" {
				twice = `{"model":"m","model":"m",` + rest + `}`
			}
			if _, err := try(t, small, path, twice); (f != noField) != (err != nil) || err != nil && (err.Code != "duplicate_field" || err.Param != name) {
				t.Errorf("%v: %s twice: %v", api, name, err)
			}
			if f == noField || f > lastSection {
				continue
			}
			none := key(t, path, `{"model":"m",`+rest+`}`)
			wantSame(t, name+" null", none, key(t, path, `{"model":"m","`+name+`":null,`+rest+`}`))
			one := key(t, path, `{"model":"m","`+name+`":{"a":1},`+rest+`}`)
			two := key(t, path, `{"model":"m",`+rest+`,"`+name+`":{"a":2}}`)
			if common(none, one) != 0 || common(one, two) > len(`{"a":`)/4 {
				t.Errorf("%v: %s is not in the key", api, name)
			}
		}
	}
}
