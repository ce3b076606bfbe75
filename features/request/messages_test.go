package request

import (
	"fmt"
	"strings"
	"testing"
)

// TestB08Messages: the Anthropic shape, whose every part counts in its place.
func TestB08Messages(t *testing.T) {
	body := func(system, tool, result string) string {
		return fmt.Sprintf(`{"model":"demo","max_tokens":64,"stream":true,"unknown":{"a":[1]},
 "system":%s,
 "tools":[{"name":"%s","description":"now","input_schema":{"type":"object","properties":{}}}],
 "messages":[
  {"role":"user","content":"time?"},
  {"role":"assistant","content":[{"type":"thinking","thinking":"need tool","signature":"s"},{"type":"tool_use","id":"tu_1","name":"get_time","input":{}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"tu_1","content":[{"type":"text","text":"%s"}]}]}]}`, system, tool, result)
	}
	block := `[{"type":"text","text":"You are terse.","cache_control":{"type":"ephemeral"}}]`
	r := must(t, small, messagesPath, body(block, "get_time", "12:00"))
	if r.API != Messages || !r.Stream || r.MaxTokens != 64 || r.Model != "demo" || r.MediaUnits != 0 {
		t.Errorf("read %+v", r)
	}
	wantSame(t, "system as a string", r.Blocks, key(t, messagesPath, body(`"You are terse."`, "get_time", "12:00")))
	if n := common(r.Blocks, key(t, messagesPath, body(block, "set_time", "12:00"))); n > len(`{"name":"`)/4 {
		t.Errorf("another tool: %d blocks in common", n)
	}
	text := long("result", 40)
	before, after := key(t, messagesPath, body(block, "get_time", "a"+text)), key(t, messagesPath, body(block, "get_time", "b"+text))
	if n := common(before, after); n != len(before)-10 && n != len(before)-11 {
		t.Errorf("last result changed: %d of %d blocks in common, all but the last 41 characters' wanted", n, len(before))
	}
	wantOther(t, "another system prompt", r.Blocks, key(t, messagesPath, body(`"You are verse."`, "get_time", "12:00")))

	inline := `{"model":"demo","max_tokens":1,"messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"time?"}]}`
	top := `{"model":"demo","max_tokens":1,"system":"You are terse.","messages":[{"role":"user","content":"time?"}]}`
	wantSame(t, "system among the messages", key(t, messagesPath, top), key(t, messagesPath, inline))
	wantSame(t, "the same conversation over chat", key(t, messagesPath, top), key(t, chatPath, inline))

	billing := func(hash string) string {
		return `[{"type":"text","text":"x-anthropic-billing-header: ` + hash + `"},{"type":"text","text":"You are terse."}]`
	}
	wantSame(t, "billing header", r.Blocks, key(t, messagesPath, body(billing("1"), "get_time", "12:00")))
	wantSame(t, "billing header", r.Blocks, key(t, messagesPath, body(billing("2"), "get_time", "12:00")))

	for _, result := range []string{
		`{"type":"tool_result","tool_use_id":"a","content":"12:00 o'clock"}`,
		`{"content":"12:00 o'clock","type":"tool_result","tool_use_id":"a"}`,
		`{"type":"tool_result","content":"bye","content":[{"type":"text","text":"12:00 o'clock"}],"tool_use_id":"a"}`,
	} {
		want := `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"12:00 o'clock"}]}]}]}`
		wantSame(t, result, key(t, messagesPath, want), key(t, messagesPath, `{"model":"m","messages":[{"role":"user","content":[`+result+`]}]}`))
	}
	answered := func(id string) []uint64 {
		return key(t, messagesPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"12:00 o'clock"},"and now?"]}]}`)
	}
	wantOther(t, "results of different calls", answered("a"), answered("b"))
	must(t, small, messagesPath, `{"model":"m","messages":[{"content":[{"type":"tool_result","content":[{"type":"tool_result","content":7}]}]}]}`)
	nested := strings.Repeat(`{"type":"tool_result","content":[`, 40) + strings.Repeat(`]}`, 40)
	must(t, small, messagesPath, `{"model":"m","messages":[{"role":"user","content":[`+nested+`]}]}`)
	if _, err := try(t, small, messagesPath, `{"model":"m","system":[{"text":"a"},1]}`); err == nil || err.Param != "system[1]" {
		t.Errorf("bad system: %v", err)
	}
	if _, err := try(t, small, messagesPath, `{"model":"m","messages":[{"content":[{"type":"tool_result","content":{}}]}]}`); err == nil || err.Param != "messages[0].content[0].content" {
		t.Errorf("bad result: %v", err)
	}
}
