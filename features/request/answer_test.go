package request

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAnswer: the chain of a prompt continued by its answer is the beginning of the next turn's, in
// every API, however the text arrives.
func TestAnswer(t *testing.T) {
	question, answer, more := long("question", 90), long("an answer", 75)+"caf\u00e9 \"x\"\n\U0001F600", long("and", 40)
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, c := range map[string]struct{ path, turn, next string }{
		"chat": {
			chatPath, `{"model":"m","messages":[{"role":"user","content":"` + question + `"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"` + question + `"},{"role":"assistant","content":` + quoted(answer) + `},{"role":"user","content":"` + more + `"}]}`,
		},
		"chat, parts": {
			chatPath, `{"model":"m","messages":[{"role":"user","content":"` + question + `"}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"` + question + `"}]},{"role":"assistant","content":[{"type":"text","text":` + quoted(answer) + `}]},{"role":"user","content":"` + more + `"}]}`,
		},
		"chat, continued": {
			chatPath, `{"model":"m","continue_final_message":true,"messages":[{"role":"assistant","content":"` + question + `"}]}`,
			`{"model":"m","messages":[{"role":"assistant","content":` + quoted(question+answer) + `},{"role":"user","content":"` + more + `"}]}`,
		},
		"messages": {
			messagesPath, `{"model":"m","system":"s","messages":[{"role":"user","content":"` + question + `"}]}`,
			`{"model":"m","system":"s","messages":[{"role":"user","content":"` + question + `"},{"role":"assistant","content":[{"type":"text","text":` + quoted(answer) + `}]},{"role":"user","content":"` + more + `"}]}`,
		},
		"responses": {
			responsesPath, `{"model":"m","input":"` + question + `"}`,
			`{"model":"m","input":[{"role":"user","content":"` + question + `"},{"type":"message","id":"x","role":"assistant","content":[{"type":"output_text","text":` + quoted(answer) + `}]},{"role":"user","content":"` + more + `"}]}`,
		},
		"responses, second turn": {
			responsesPath, `{"model":"m","input":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"` + question + `"}]}`,
			`{"model":"m","input":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"` + question + `"},{"role":"assistant","content":` + quoted(answer) + `}]}`,
		},
		"responses, after a call": {
			responsesPath, `{"model":"m","input":[{"role":"assistant","content":"hello"},{"type":"function_call","name":"f"},{"type":"function_call_output","output":"` + question + `"}]}`,
			`{"model":"m","input":[{"role":"assistant","content":"hello"},{"type":"function_call","name":"f"},{"type":"function_call_output","output":"` + question + `"},{"role":"assistant","content":` + quoted(answer) + `}]}`,
		},
		"completions": {
			completionPath, `{"model":"m","prompt":"` + question + `"}`,
			`{"model":"m","prompt":` + quoted(question+answer+more) + `}`,
		},
		"completions, list": {
			completionPath, `{"model":"m","prompt":["` + question + `"]}`,
			`{"model":"m","prompt":` + quoted(question+answer+more) + `}`,
		},
	} {
		next := key(t, c.path, c.next)
		for how, add := range map[string]func(r *Request){
			"whole": func(r *Request) { r.AddAnswer([]byte(answer)) },
			"by bytes": func(r *Request) {
				for i := range len(answer) {
					r.AddAnswer([]byte{answer[i]})
					r.AddAnswer(nil)
				}
			},
			"quoted": func(r *Request) {
				r.AddQuoted([]byte(`""`))
				for _, ch := range answer {
					r.AddQuoted([]byte(quoted(string(ch))))
				}
			},
			"ended": func(r *Request) {
				r.AddAnswer([]byte(answer))
				r.EndAnswer()
				r.AddAnswer([]byte("not of this message"))
				r.AddQuoted([]byte(`"nor this"`))
			},
		} {
			r := must(t, small, c.path, c.turn)
			prompt := len(r.Blocks)
			add(r)
			if n := common(r.Chain(), next); n != len(r.Chain()) || n < prompt+len(answer)/4-1 {
				t.Errorf("%s, %s: %d of %d blocks are the next turn's, %d of them the prompt's", name, how, n, len(r.Chain()), prompt)
			}
			if len(r.Blocks) != prompt || common(r.Blocks, next) != prompt {
				t.Errorf("%s, %s: the prompt's chain changed", name, how)
			}
		}
	}
}

// TestAnswerUnforeseen: where the next turn cannot be foreseen, nothing is continued.
func TestAnswerUnforeseen(t *testing.T) {
	text := []byte(strings.Repeat("answer ", 20))
	for name, c := range map[string]struct{ path, body string }{
		"ids":                 {completionPath, `{"model":"m","prompt":[1,2,3,4]}`},
		"id lists":            {completionPath, `{"model":"m","prompt":[[1,2,3,4]]}`},
		"several prompts":     {completionPath, `{"model":"m","prompt":["hello, world","hello"]}`},
		"embedding":           {embeddingPath, `{"model":"m","input":"hello, world"}`},
		"prefilled chat":      {chatPath, `{"model":"m","messages":[{"role":"assistant","content":"hello, world"}]}`},
		"prefilled messages":  {messagesPath, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"hello, world"}]}`},
		"prefilled responses": {responsesPath, `{"model":"m","input":[{"role":"assistant","content":"hello, world"}]}`},
		"opaque":              {"/v1/rerank", `{"model":"m"}`},
	} {
		r := must(t, small, c.path, c.body)
		before := len(r.Blocks)
		r.AddAnswer(text)
		r.AddQuoted([]byte(`"some more text"`))
		if len(r.Chain()) != before {
			t.Errorf("%s: %d blocks became %d", name, before, len(r.Chain()))
		}
	}
	for _, bad := range []string{``, `"`, `x`, `"a`, `"a" "b"`, `"\x"`, "\"\xff\"", `7`} {
		r := must(t, small, completionPath, `{"model":"m","prompt":"hello, world"}`)
		r.AddQuoted([]byte(bad))
		r.AddAnswer(text)
		if len(r.Chain()) != len(r.Blocks) {
			t.Errorf("%q does not end the answer", bad)
		}
	}
	var zero Request
	zero.AddAnswer(text)
	zero.AddQuoted([]byte(`"x"`))
	zero.EndAnswer()
	if len(zero.Chain()) != 0 {
		t.Error("the zero request has a chain")
	}
}
