package request

import (
	"bytes"
	"encoding/json"
	"testing"
)

// spliced is the body that is sent.
func spliced(r *Request, body string) string {
	before, model, after := r.Splice([]byte(body))
	return string(before) + string(model) + string(after)
}

var rewrite = Config{BlockSize: 4, Rewrite: map[string]string{"alias": "demo-base", `a"b`: `x\y`, "demo-base": "demo-base"}}

// TestB04Rewrite: a rewritten model changes the bytes of its name and no others.
func TestB04Rewrite(t *testing.T) {
	odd := `,"prompt":"hi","seed":9007199254740995,"top_p":1.0,"temperature":1e-7,"metadata":{"z":1,"a":"\u003cb\u003e \/ \u00e9"},"x":[1,2.50,-0],"id":[1234567890123456789,{"model":"alias"}],"y":1e400,  "z" :  [ ] }`
	for in, want := range map[string]string{
		`{"model":"alias"` + odd:          `{"model":"demo-base"` + odd,
		`{"model":"\u0061lias"` + odd:     `{"model":"demo-base"` + odd,
		` { "mod\u0065l" : "alias"` + odd: ` { "mod\u0065l" : "demo-base"` + odd,
		`{"x":"alias","model":"alias"}`:   `{"x":"alias","model":"demo-base"}`,
		`{"model":"a\"b"}`:                `{"model":"x\\y"}`,
		`{"model":"demo-base"` + odd:      `{"model":"demo-base"` + odd,
		`{"model":"other"` + odd:          `{"model":"other"` + odd,
	} {
		r := must(t, rewrite, completionPath, in)
		if got := spliced(r, in); got != want {
			t.Errorf("%s\nbecame\n%s\nwant\n%s", in, got, want)
		}
		if (r.Rewrite != "") != (in != want) || in != want && r.Target() != r.Rewrite || in == want && r.Target() != r.Model {
			t.Errorf("%s: model %q, rewritten to %q", in, r.Model, r.Rewrite)
		}
	}
	in := `{"model":"other"}`
	if before, model, after := must(t, rewrite, completionPath, in).Splice([]byte(in)); string(before) != in || model != nil || after != nil {
		t.Errorf("without a rewrite: %q %q %q", before, model, after)
	}
	wantSame(t, "alias and real name", must(t, rewrite, completionPath, `{"model":"alias","prompt":"hello, world"}`).Blocks,
		must(t, rewrite, completionPath, `{"model":"demo-base","prompt":"hello, world"}`).Blocks)
}

// TestB03CatchAll: a rule for every other name, and for bodies without one.
func TestB03CatchAll(t *testing.T) {
	c := Config{Rewrite: map[string]string{"*": "demo-base", "keep": "keep"}}
	for in, want := range map[string]string{
		`{"prompt":"hi"}`:             `{"model":"demo-base","prompt":"hi"}`,
		` { "prompt" : "hi" } `:       ` {"model":"demo-base", "prompt" : "hi" } `,
		`{}`:                          `{"model":"demo-base"}`,
		` { } `:                       ` {"model":"demo-base" } `,
		`{"model":"x","prompt":"hi"}`: `{"model":"demo-base","prompt":"hi"}`,
		`{"model":"keep"}`:            `{"model":"keep"}`,
		`{"model":"demo-base"}`:       `{"model":"demo-base"}`,
	} {
		r := must(t, c, completionPath, in)
		if got := spliced(r, in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
		if r.Target() == "" || r.Model == "" || !json.Valid([]byte(spliced(r, in))) {
			t.Errorf("%s: model %q, target %q", in, r.Model, r.Target())
		}
	}
	for _, in := range []string{`{"model":""}`, `{"model":null}`, `{"model":7}`} {
		if _, err := try(t, c, completionPath, in); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
}

func TestFindModel(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"c1","model":"demo-base","choices":[{"message":{"content":"demo-base","model":"no"}}]}`: `"demo-base"`,
		` { "x" : { "model" : "no" } , "model" : "demo-base" } `:                                       `"demo-base"`,
		`{"type":"response.created","response":{"id":"r","model":"demo-base"}}`:                        `"demo-base"`,
		`{"type":"message_start","message":{"model":"demo-base","usage":{}}}`:                          `"demo-base"`,
		`{"message":"text","model":"demo-base"}`:                                                       `"demo-base"`,
		`{"model":"de\u006do","cut":`:                                                                  `"de\u006do"`,
		`{"message":{"message":{"model":"no"}}}`:                                                       "",
		`{"model":null}`:                                                                               "", `{"model":7}`: "", `{"x":1}`: "", `{}`: "", `[{"model":"no"}]`: "", ``: "", `{`: "", `{"model"`: "", `{"model":"cut`: "", `{"a":1 "model":"x"}`: "", `"model"`: "",
	} {
		start, end, ok := FindModel([]byte(in))
		if ok != (want != "") || ok && in[start:end] != want {
			t.Errorf("%s: %d to %d, %v, want %s", in, start, end, ok, want)
		}
	}
}

func FuzzFindModel(f *testing.F) {
	f.Add([]byte(`{"id":1,"model":"m"}`))
	f.Add([]byte(`{"response":{"model":"m"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		start, end, ok := FindModel(b)
		if !ok {
			return
		}
		var s string
		if err := json.Unmarshal(b[start:end], &s); err != nil {
			t.Errorf("%q: %q is no string: %v", b, b[start:end], err)
		}
		if !bytes.HasPrefix(bytes.TrimLeft(b, " \n\r\t"), []byte("{")) {
			t.Errorf("%q: a model outside an object", b)
		}
	})
}
