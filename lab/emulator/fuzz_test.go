package emulator

import (
	"errors"
	"testing"
)

// Any body is answered with a problem or with work within the limits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"hello","max_tokens":5}`, `{"prompt":[1,2,3],"n":2}`, `{"prompt":[[1],[2]]}`, `{"prompt":["a","b"],"min_tokens":3}`,
		`{"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}],"tools":[{}]}`,
		`{"messages":[{"role":"user","content":"\ud800"}],"vllm_xargs":{"output_tokens":1e99}}`,
		`{"prompt":"x","max_tokens":-9223372036854775808}`, `{"prompt":"x","n":9223372036854775807}`, `{`, `[]`, `null`, ``,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	e, err := New(Config{Engine: h100(f), MaxLen: 1000})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, chat bool) {
		a, err := e.parse(data, chat)
		var p *problem
		if err != nil {
			if !errors.As(err, &p) || p.status < 400 || p.status > 499 {
				t.Fatalf("%v", err)
			}
			return
		}
		if len(a.units) < 1 || len(a.units) > maxChoices {
			t.Fatalf("%d answers", len(a.units))
		}
		for _, u := range a.units {
			if u.output < 1 || len(u.tokens) < 1 || len(u.tokens)+u.output > 1000 {
				t.Fatalf("%d prompt and %d output tokens", len(u.tokens), u.output)
			}
		}
	})
}
