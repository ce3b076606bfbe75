package request

import (
	"fmt"
	"testing"
)

// TestB08Responses: the same variants for Responses.
func TestB08Responses(t *testing.T) {
	body := func(instructions, tool, output string) string {
		return fmt.Sprintf(`{"model":"demo","max_output_tokens":9,"instructions":"%s",
 "tools":[{"type":"function","name":"%s"}],
 "input":[{"role":"user","content":"what time?"},
  {"type":"function_call","call_id":"c1","name":"get_time","arguments":"{\"a\":1}"},
  {"type":"function_call_output","call_id":"c1","output":"%s"}]}`, instructions, tool, output)
	}
	r := must(t, small, responsesPath, body("be terse", "get_time", "12:00"))
	if r.API != Responses || r.MaxTokens != 9 {
		t.Errorf("read %+v", r)
	}
	wantOther(t, "instructions", r.Blocks, key(t, responsesPath, body("be verse", "get_time", "12:00")))
	if n := common(r.Blocks, key(t, responsesPath, body("be terse", "set_time", "12:00"))); n > len(`{"type":"function","name":"`)/4 {
		t.Errorf("another tool: %d blocks in common", n)
	}
	text := long("output", 40)
	before, after := key(t, responsesPath, body("be terse", "get_time", "a"+text)), key(t, responsesPath, body("be terse", "get_time", "b"+text))
	if n := common(before, after); n != len(before)-10 && n != len(before)-11 {
		t.Errorf("output changed: %d of %d blocks in common, all but the last 41 characters' wanted", n, len(before))
	}
	for name, same := range map[string][]string{
		"user": {
			`{"model":"m","input":"hello, world"}`,
			`{"model":"m","input":[{"role":"user","content":"hello, world"}]}`,
			`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello, world"}]}]}`,
			`{"model":"m","input":[{"content":[{"text":"hello, world","type":"input_text"}],"role":"user","type":"message","id":"x"}]}`,
			`{"model":"m","input":[{"role":"user","content":"hello, world","type":"message"}]}`,
			`{"model":"m","input":[{"role":"user","content":"bye","content":"hello, world"}]}`,
		},
		"output": {
			`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"hello, world"}]}`,
			`{"model":"m","input":[{"output":"hello, world","call_id":"c","type":"function_call_output"}]}`,
			`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"hello, world"}]}]}`,
			`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"bye","output":"hello, world"}]}`,
		},
	} {
		want := key(t, responsesPath, same[0])
		for _, b := range same[1:] {
			wantSame(t, name+" "+b, want, key(t, responsesPath, b))
		}
	}
	for _, item := range []string{
		`{"type":"function_call","call_id":"%s","name":"f","arguments":"hello, world"}`,
		`{"type":"function_call_output","call_id":"%s","output":"hello, world"}`,
		`{"type":"function_call","name":"%s","arguments":"hello, world"}`,
		`{"type":"item_reference","id":"%s, more than a block"}`,
		`{"type":"function_call_output","output":{"%s, more than a block":1}}`,
		`{"type":"message","role":"%s","content":"hello, world"}`,
	} {
		with := func(s string) []uint64 {
			return key(t, responsesPath, `{"model":"m","input":[`+fmt.Sprintf(item, s)+`,{"role":"user","content":"hello, world"}]}`)
		}
		wantOther(t, item, with("a"), with("b"))
	}
	wantOther(t, "a role does not make a message", key(t, responsesPath, `{"model":"m","input":[{"type":"reasoning","role":"user","content":"hello, world"}]}`),
		key(t, responsesPath, `{"model":"m","input":[{"type":"message","role":"user","content":"hello, world"}]}`))
	if r := must(t, small, responsesPath, `{"model":"m","input":[{"role":"user","content":[{"type":"input_image"}],"content":[{"type":"input_image"}]}]}`); r.MediaUnits != 1 {
		t.Errorf("%d units of one image", r.MediaUnits)
	}
	wantOther(t, "previous response", key(t, responsesPath, `{"model":"m","previous_response_id":"r1","input":"hello, world"}`),
		key(t, responsesPath, `{"model":"m","previous_response_id":"r2","input":"hello, world"}`))
	must(t, small, responsesPath, `{"model":"m","input":[{"type":"reasoning","summary":[]},{"type":"item_reference","id":"i"},{},{"type":7},{"role":"user"}]}`)
	for in, param := range map[string]string{
		`{"model":"m","input":7}`:                                              "input",
		`{"model":"m","input":{"role":"user"}}`:                                "input",
		`{"model":"m","input":[[1]]}`:                                          "input[0]",
		`{"model":"m","input":["a"]}`:                                          "input[0]",
		`{"model":"m","input":[{},{"role":"user","content":3}]}`:               "input[1].content",
		`{"model":"m","input":[{"type":"function_call_output","output":[1]}]}`: "input[0].output[0]",
		`{"model":"m","instructions":{"a":1}}`:                                 "instructions",
	} {
		if _, err := try(t, small, responsesPath, in); err == nil || err.Param != param {
			t.Errorf("%s: %v, want %s", in, err, param)
		}
	}
}
