package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

// fuzzPaths are the APIs whose bodies are JSON.
var fuzzPaths = [...]string{chatPath, completionPath, responsesPath, embeddingPath, messagesPath}

// FuzzParse feeds any body to every API: the answer is a request or a refusal; the body stays; what
// is accepted is JSON that others read as we do; a rewrite changes the model alone; and a second
// reading, of the body in its one form too, finds the same key.
func FuzzParse(f *testing.F) {
	for i := range fuzzPaths {
		for _, s := range []string{
			`{"model":"alias","prompt":"hi","seed":9007199254740995,"input":"x"}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a\nb"},{"type":"image_url","image_url":{"url":"x"}}]}],"tools":[{"cache_control":1,"name":"f"}],"model":"m"}`,
			`{"model":"m","prompt":[[1,2],[3]],"input":[1,2],"max_tokens":1e3}`,
			`{"model":"m","system":[{"type":"text","text":"s"}],"messages":[{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"text":"x"}]}],"role":"user"}]}`,
			`{"model":"m","input":[{"type":"function_call","name":"f","arguments":"{}"},{"type":"function_call_output","output":"x"},{"role":"user","content":"y"}]}`,
			`{"model":"m","messages":[{"role":"a","content":"x","content":"y","role":"b","tool_calls":[{}]}]}`,
			`{"mod\u0065l":"\ud83d\ude00","cache_salt":"\ud83d"}`,
		} {
			f.Add(uint8(i), []byte(s))
		}
	}
	p, err := NewParser(Config{BlockSize: 4, Rewrite: map[string]string{"alias": "real", "*": "any"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		path := fuzzPaths[int(which)%len(fuzzPaths)]
		in := bytes.Clone(body)
		var r Request
		err := p.Parse(&r, head(path), in)
		if !bytes.Equal(in, body) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			refused(t, &r, err)
			return
		}
		var before map[string]json.RawMessage
		if err := json.Unmarshal(body, &before); err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		if r.Model == "" || r.Choices < 1 || r.MaxTokens < 0 || r.PromptTokens < 0 || r.PromptBytes < 4*len(r.Blocks) || r.PromptBytes >= 4*len(r.Blocks)+4 {
			t.Fatalf("read %+v", &r)
		}
		head1, model, tail := r.Splice(body)
		sent := slices.Concat(head1, model, tail)
		var after map[string]json.RawMessage
		if err := json.Unmarshal(sent, &after); err != nil {
			t.Fatalf("%q is sent, but %v", sent, err)
		}
		var name string
		if err := json.Unmarshal(after["model"], &name); err != nil || name != r.Target() {
			t.Fatalf("model %q is sent, target %q: %v", name, r.Target(), err)
		}
		delete(before, "model")
		delete(after, "model")
		if len(before) != len(after) {
			t.Fatalf("%q became %q", body, sent)
		}

		// The engine's view of what is sent has the same key.
		again := Request{}
		if err := p.Parse(&again, head(path), sent); err != nil {
			t.Fatalf("%q is sent, but refused: %v", sent, err)
		}
		if r.Target() == "any" && !slices.Equal(r.Blocks, again.Blocks) {
			t.Fatalf("what is sent has another key")
		}
		var one bytes.Buffer
		again.memory().canon(&one, bytes.Trim(body, " \n\r\t"))
		third := Request{}
		if err := p.Parse(&third, head(path), one.Bytes()); err != nil {
			t.Fatalf("%q is the same as %q, but refused: %v", one.Bytes(), body, err)
		}
		if !slices.Equal(third.Blocks, r.Blocks) || third.Model != r.Model {
			t.Fatalf("%q has another key than %q", one.Bytes(), body)
		}
		r.AddAnswer(body)
		r.AddQuoted(body)
		if !slices.Equal(r.Chain()[:len(r.Blocks)], third.Blocks) {
			t.Fatal("the answer changed the prompt's chain")
		}
	})
}

// refused checks a refusal.
func refused(t *testing.T, r *Request, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Status < 400 || e.Status > 499 || e.Message == "" {
		t.Fatalf("error %#v", err)
	}
	if b := e.AppendBody(nil, r.API); !json.Valid(b) {
		t.Fatalf("%s is no JSON", b)
	}
}

// FuzzHead feeds any headers: nothing panics, and what is kept is bounded and printable.
func FuzzHead(f *testing.F) {
	f.Add("POST", "/v1/chat/completions?x", "application/json", "gzip", "250.5", "id\r\n")
	f.Add("POST", "/v1/audio/transcriptions", `multipart/form-data; boundary="a b"`, "", "NaN", "u")
	f.Add("GET", "/", "", "identity", "1e-5", "")
	p, err := NewParser(Config{Priorities: map[string]int{"u": 3}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, contentType, encoding, slo, name string) {
		var h Head
		for k, v := range map[string]string{
			":method": method, ":path": path, "content-type": contentType, "content-encoding": encoding,
			"x-llm-d-slo-ttft-ms": slo, "X-SLO-TPOT-MS": slo, "x-session-id": name, "x-request-id": name,
			"x-gateway-inference-fairness-id": name, "x-gateway-inference-objective": name, name: slo,
		} {
			h.Set(k, []byte(v))
		}
		var r Request
		body, err := p.Head(&r, &h, false)
		if err != nil {
			t.Fatalf("a head alone is refused: %v", err)
		}
		if body == (r.API == Opaque) {
			t.Fatalf("body %v for %v", body, r.API)
		}
		for _, s := range []string{r.Session, r.Tenant, r.ID} {
			for _, c := range []byte(s) {
				if c < 0x20 || c > 0x7e {
					t.Fatalf("%q is kept", s)
				}
			}
			if len(s) > maxLabel {
				t.Fatalf("%d bytes are kept", len(s))
			}
		}
		if d := r.SLO.TTFT; d != 0 && (d < minSLO || d > maxSLO) || len(r.Path) > maxPath {
			t.Fatalf("SLO %v, path of %d bytes", d, len(r.Path))
		}
		Control(name)
	})
}
