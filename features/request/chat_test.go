package request

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestB01ContentParts: content as part arrays is routed, its text is seen in order, and media count
// by what they are.
func TestB01ContentParts(t *testing.T) {
	body := func(image, extra string) string {
		return `{"model":"demo-vl","max_tokens":4,"messages":[
 {"role":"system","content":"Answer briefly."},
 {"role":"user","content":[
  {"type":"text","text":"Which cat is older?"},
  {"type":"image_url","image_url":{"url":"` + image + `"}},
  {"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},` + extra + `
  {"type":"text","text":"One word. ` + long("w", 40) + `"}]}]}`
	}
	const one, two = "https://img.example.test/cats/0001.png", "https://img.example.test/cats/0002.png"
	a := must(t, small, chatPath, body(one, ""))
	if a.API != Chat || a.Model != "demo-vl" || a.MaxTokens != 4 || a.MediaUnits != 2 || a.Choices != 1 || a.Stream {
		t.Errorf("read %+v", a)
	}
	if want := len("Answer briefly." + "Which cat is older?" + "One word. " + long("w", 40)); a.PromptBytes != want {
		t.Errorf("%d bytes of text, want %d", a.PromptBytes, want)
	}
	wantSame(t, "the same again", a.Blocks, key(t, chatPath, body(one, "")))
	b := key(t, chatPath, body(two, ""))
	before := len("Answer briefly.Which cat is older?") / 4
	if n := common(a.Blocks, b); n != before || len(b) != len(a.Blocks) {
		t.Errorf("another image: %d blocks in common, want the %d before it", n, before)
	}
	if again := must(t, small, chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"image"}],"content":[{"type":"image"}]}]}`); again.MediaUnits != 1 {
		t.Errorf("%d units of one image given twice", again.MediaUnits)
	}
	d := must(t, small, chatPath, body(one, `{"type":"hologram","x":1},`))
	if d.MediaUnits != 3 || common(a.Blocks, d.Blocks) != before {
		t.Errorf("a part of an unknown type: %d units, %d blocks in common", d.MediaUnits, common(a.Blocks, d.Blocks))
	}
	must(t, small, chatPath, `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,
		"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"ok"}]}`)
}

// TestB01BigImage: an image of megabytes inside the body costs no memory beyond it.
func TestB01BigImage(t *testing.T) {
	data := strings.Repeat("QUJD", 1<<20)
	body := []byte(`{"model":"demo-vl","messages":[{"role":"user","content":[{"type":"text","text":"What?"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}]}]}`)
	p, h := parser(t, Config{}), head(chatPath)
	var r Request
	if err := p.Parse(&r, h, body); err != nil {
		t.Fatal(err)
	}
	if r.MediaUnits != 1 || r.PromptBytes != len("What?") {
		t.Errorf("%d units, %d bytes of text", r.MediaUnits, r.PromptBytes)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r = Request{}
	if err := p.Parse(&r, h, body); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes allocated for a body of %d", used, len(body))
	}
}

// TestB01Sweep: every role with every form of content, media first and last.
func TestB01Sweep(t *testing.T) {
	text, image := `{"type":"text","text":"hello, world"}`, `{"type":"image_url","image_url":{"url":"http://x/1"}}`
	for _, role := range []string{`"role":"system",`, `"role":"developer",`, `"role":"user",`, `"role":"assistant",`, `"role":"tool",`, `"role":null,`, `"role":7,`, ``} {
		for content, ok := range map[string]bool{
			`"content":"hello, world"`:                true,
			`"content":[]`:                            true,
			`"content":null`:                          true,
			`"x":1`:                                   true,
			`"content":["hello"," world"]`:            true,
			`"content":[` + text + `]`:                true,
			`"content":[` + image + `,` + text + `]`:  true,
			`"content":[` + text + `,` + image + `]`:  true,
			`"content":[{"text":"x"},{}]`:             true,
			`"content":[{"type":"text","text":null}]`: true,
			`"content":[{"type":"text","text":{}}]`:   true,
			`"content":[{"type":null,"text":"x"}]`:    true,
			`"content":{"type":"text","text":"x"}`:    false,
			`"content":7`:                             false,
			`"content":true`:                          false,
			`"content":[7]`:                           false,
			`"content":[null]`:                        false,
			`"content":[[` + text + `]]`:              false,
		} {
			body := `{"model":"m","messages":[{` + role + content + `}]}`
			_, err := try(t, small, chatPath, body)
			if (err == nil) != ok {
				t.Errorf("%s: %v", body, err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "messages[0].content") {
				t.Errorf("%s: %v does not say where", body, err)
			}
		}
	}
	for body, where := range map[string]string{
		`{"model":"m","messages":"hi"}`:                         "messages: ",
		`{"model":"m","messages":{"role":"user"}}`:              "messages: ",
		`{"model":"m","messages":[{"role":"user"},"hi"]}`:       "messages[1]: ",
		`{"model":"m","messages":[{},{"content":[{},{},3]}]}`:   "messages[1].content[2]: ",
		`{"model":"m","messages":[{"content":[[]],"role":""}]}`: "messages[0].content[0]: ",
	} {
		if _, err := try(t, small, chatPath, body); err == nil || !strings.HasPrefix(err.Error(), where) {
			t.Errorf("%s: %v, want %q", body, err, where)
		}
	}
	for _, body := range []string{`{"model":"m"}`, `{"model":"m","messages":null}`, `{"model":"m","messages":[]}`} {
		if r := must(t, small, chatPath, body); len(r.Blocks) != 0 || r.PromptTokens != 0 {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

// TestOrderOfMembers: the order of members, white space and escapes are the client's affair, and of
// two members by one name the last counts, as for engines.
func TestOrderOfMembers(t *testing.T) {
	for name, same := range map[string][]string{
		"message": {
			`{"model":"m","messages":[{"role":"user","content":"hello, world"}]}`,
			`{"messages":[{"content":"hello, world","role":"user"}],"model":"m"}`,
			`{ "messages" : [ { "content" : "hello,\u0020world" , "r\u006fle" : "us\u0065r" } ] , "model" : "m" }`,
			`{"model":"m","messages":[{"role":"system","content":"bye","role":"user","content":"hello, world"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"bye","content":"hello, world","content":"hello, world"}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","url":"x"}],"content":"hello, world"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"hello, world","role":"user"}]}`,
			`{"model":"m","messages":[{"role":"x","content":"hello, world","role":"user"}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello, world"}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"text":"hello, world","type":"text"}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"text":"hello, world"}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":["hello, world"]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"bye","text":"hello, world"}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image","text":"hello, world","type":"text"}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello, world","cache_control":{"type":"ephemeral"}}]}]}`,
			`{"model":"m","tools":[],"messages":[{"role":"user","content":"hello, world","tool_calls":null,"name":null}]}`,
			`{"model":"m","tools":null,"messages":[{"role":"user","content":"hello, world","tool_calls":[]}],"temperature":1.5}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"hello, world"}]}]}`,
		},
		"tools": {
			`{"model":"m","tools":[{"type":"function","function":{"name":"f","description":"a / b"}}],"messages":[]}`,
			`{"messages":[],"tools":[ { "type" : "function", "function" : {"name":"f","description":"a \/ \u0062"} } ],"model":"m"}`,
			`{"model":"m","tools":[{"type":"function","cache_control":{"type":"ephemeral"},"function":{"name":"f","description":"a / b"}}]}`,
		},
		"refusal": {
			`{"model":"m","messages":[{"role":"user","content":[{"type":"refusal","refusal":"hello, world"}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"bye","type":"refusal","refusal":"hello, world"}]}]}`,
		},
		"image": {
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"data":"x"}},"hello, world"]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image","cache_control":{"type":"ephemeral"},"source":{"data":"x"}},"hello, world"]}]}`,
		},
		"image twice": {
			`{"model":"m","messages":[{"role":"user","content":["hello, world"]}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image"}],"content":["hello, world"]}]}`,
		},
		"calls": {
			`{"model":"m","messages":[{"role":"assistant","content":"x","name":"n","tool_calls":[{"id":"1"}],"reasoning":"because"}]}`,
			`{"model":"m","messages":[{"reasoning_content":"because","tool_calls":[{"id":"1"}],"name":"n","content":"x","role":"assistant"}]}`,
		},
	} {
		want := key(t, chatPath, same[0])
		for _, body := range same[1:] {
			wantSame(t, name+" "+body, want, key(t, chatPath, body))
		}
	}
}

// TestB25Sweep: what changes the prompt changes the key, boundaries included.
func TestB25Sweep(t *testing.T) {
	text := long("prompt", 100)
	seen := map[uint64]string{}
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"ab"},{"role":"user","content":"c` + text + `"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"bc` + text + `"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","messages":[{"role":"system","content":"abc` + text + `"}]}`,
		`{"model":"m","messages":[{"content":"abc` + text + `"}]}`,
		`{"model":"m","messages":[{"role":"user","content":""},{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"ab"},{"type":"text","text":"c` + text + `"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"bc` + text + `"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"abc` + text + `"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"y"}},{"type":"text","text":"abc` + text + `"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"thinking","thinking":"abc` + text + `"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"refusal","refusal":"abc` + text + `"}]}]}`,
		`{"model":"m","chat_template_kwargs":{"enable_thinking":false},"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","chat_template":"{{x}}","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","chat_template":"{{y}}","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","reasoning_effort":"high","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","lora_path":"a","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","extra_key":"a","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","cache_salt":"t1","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","cache_salt":"t2","messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","cache_salt":["t2"],"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","tools":[{"type":"function","function":{"name":"g"}}],"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","functions":[{"name":"f"}],"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","documents":[{"text":"abc"}],"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","documents":[1,2],"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m","documents":[12],"messages":[{"role":"user","content":"abc` + text + `"}]}`,
		`{"model":"m2","messages":[{"role":"user","content":"abc` + text + `"}]}`,
	} {
		// A block as long as the text tells all that stands before its end.
		blocks := must(t, Config{BlockSize: 100}, chatPath, body).Blocks
		if len(blocks) != 1 {
			t.Fatalf("%s: %d blocks", body, len(blocks))
		}
		if other, dup := seen[blocks[0]]; dup {
			t.Errorf("same key:\n%s\n%s", body, other)
		}
		seen[blocks[0]] = body
	}
}

// TestB25Identity: what belongs to a prefix key, as requests name it.
func TestB25Identity(t *testing.T) {
	prompt := long("a long prompt ", 2000)
	c := Config{
		Rewrite: map[string]string{"alias": "demo"},
		Adapter: func(m string) bool { return strings.HasPrefix(m, "demo-lora-") },
	}
	first := func(body string) uint64 { return must(t, c, completionPath, body).Blocks[0] }
	bodies := []string{
		`{"model":"demo","prompt":"` + prompt + `"}`,
		`{"model":"demo-lora-a","prompt":"` + prompt + `"}`,
		`{"model":"demo-lora-b","prompt":"` + prompt + `"}`,
		`{"model":"demo","cache_salt":"t1","prompt":"` + prompt + `"}`,
		`{"model":"demo","cache_salt":"t2","prompt":"` + prompt + `"}`,
		`{"model":"dem","prompt":"o` + prompt + `"}`,
	}
	seen := map[uint64]string{}
	for _, body := range bodies {
		k := first(body)
		if other, dup := seen[k]; dup {
			t.Errorf("first block is the same: %.60s, %.60s", body, other)
		}
		seen[k] = body
		if k != first(body) {
			t.Errorf("%.60s: not equal to itself", body)
		}
	}
	if first(`{"model":"alias","prompt":"`+prompt+`"}`) != first(bodies[0]) {
		t.Error("alias and real name do not share the key")
	}
	if r := must(t, c, completionPath, bodies[1]); r.Adapter != "demo-lora-a" || r.Model != "demo-lora-a" {
		t.Errorf("adapter %q of model %q", r.Adapter, r.Model)
	}
}

// TestB26ShortPrompts: a prompt below one block has no key at all, so that nothing trivial is
// shared; one block has one.
func TestB26ShortPrompts(t *testing.T) {
	for n, want := range map[int]int{0: 0, 20: 0, 255: 0, 256: 1, 257: 1, 512: 2} {
		r := must(t, Config{}, chatPath, `{"model":"m","messages":[{"role":"user","content":"`+long("x", n)+`"}]}`)
		if len(r.Blocks) != want || r.BlockSize != 256 {
			t.Errorf("%d characters: %d blocks of %d, want %d", n, len(r.Blocks), r.BlockSize, want)
		}
	}
}

// TestB10Unicode: characters, escapes and bytes that are none.
func TestB10Unicode(t *testing.T) {
	const word = "\u6570\u636e"
	prompt := func(s string) string { return `{"model":"m","prompt":"` + s + `"}` }
	p1 := must(t, Config{BlockSize: 64}, completionPath, prompt(strings.Repeat(word, 200)))
	if p1.PromptTokens < 200 || p1.PromptTokens > 1200 || p1.PromptBytes != 1200 {
		t.Errorf("%d tokens of %d bytes", p1.PromptTokens, p1.PromptBytes)
	}
	p2 := must(t, Config{BlockSize: 64}, completionPath, prompt(strings.Repeat(word, 199)+"\u6570\u636f"))
	if n := common(p1.Blocks, p2.Blocks); n < len(p1.Blocks)-1 {
		t.Errorf("last character changed: %d of %d blocks in common", n, len(p1.Blocks))
	}
	p3 := must(t, Config{BlockSize: 64}, completionPath, prompt(strings.Repeat(`\u6570\u636E`, 200)))
	wantSame(t, "escaped", p1.Blocks, p3.Blocks)
	family := strings.Repeat("\U0001F468\u200d\U0001F469\u200d\U0001F467", 100)
	pair := strings.Repeat(`\ud83d\udc68\u200D\uD83D\uDC69\u200d\ud83d\uDC67`, 100)
	for size := 1; size <= 64; size++ {
		a := must(t, Config{BlockSize: size}, completionPath, prompt(family))
		wantSame(t, "family, size "+strconv.Itoa(size), a.Blocks, must(t, Config{BlockSize: size}, completionPath, prompt(pair)).Blocks)
	}
	must(t, small, completionPath, prompt(`\ud83d`))
	must(t, small, completionPath, prompt(`a\u0000b`))
	wantOther(t, "half a surrogate and U+FFFD", key(t, completionPath, prompt(`\ud83d and more`)), key(t, completionPath, prompt(`\ufffd and more`)))
	wantOther(t, "NFC and NFD", key(t, completionPath, prompt("caf\u00e9 au lait")), key(t, completionPath, prompt("cafe\u0301 au lait")))

	for in, code := range map[string]string{
		"\xef\xbb\xbf" + prompt("hi"):        "invalid_json",
		prompt("a\xffb"):                     "invalid_utf8",
		`{"model":"m","x":{"` + "\xff\":1}}": "invalid_utf8",
		prompt("long enough \xe6\x95 text"):  "invalid_utf8",
	} {
		if _, err := try(t, small, completionPath, in); err == nil || err.Code != code || err.Status != 400 {
			t.Errorf("%q: %v", in, err)
		}
	}
}

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

// TestHints: what helps to choose an endpoint is read in any form that engines take, bounded, and
// left alone in all others.
func TestHints(t *testing.T) {
	with := func(more string) *Request {
		return must(t, small, chatPath, `{"model":"m",`+more+`"messages":[]}`)
	}
	for in, want := range map[string]int{
		`"max_tokens":64,`: 64, `"max_tokens":64.0,`: 64, `"max_tokens":"64",`: 64, `"max_tokens":6.4e1,`: 64,
		`"max_tokens":0,`: 0, `"max_tokens":-5,`: 0, `"max_tokens":1.5,`: 0, `"max_tokens":null,`: 0, `"max_tokens":"many",`: 0,
		`"max_tokens":[5],`: 0, `"max_tokens":{},`: 0, `"max_tokens":true,`: 0, `"max_tokens":1e400,`: 0,
		`"max_tokens":99999999999999999999,`: maxCount, `"max_tokens":1e30,`: maxCount,
		`"max_tokens":9,"max_completion_tokens":7,`: 7, `"max_completion_tokens":null,"max_tokens":9,`: 9, `"max_output_tokens":3,`: 0,
	} {
		if got := with(in).MaxTokens; got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
	for in, want := range map[string]int{``: 1, `"n":3,`: 3, `"n":0,`: 1, `"n":null,`: 1, `"n":-1,`: 1, `"n":1e9,`: maxChoices, `"n":[],`: 1} {
		if got := with(in).Choices; got != want {
			t.Errorf("%s: %d choices, want %d", in, got, want)
		}
	}
	for in, want := range map[string]bool{`"stream":true,`: true, `"stream":"true",`: true, `"stream":1,`: true, `"stream":false,`: false, `"stream":null,`: false, `"stream":[],`: false, ``: false} {
		if got := with(in).Stream; got != want {
			t.Errorf("%s: stream %v, want %v", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`"user":"u-1",`: "u-1", `"user":null,`: "", `"user":7,`: "", `"user":{},`: "", `"user":"",`: "",
		`"metadata":{"user_id":"u-2"},`: "",
	} {
		if got := with(in).Session; got != want {
			t.Errorf("%s: session %q, want %q", in, got, want)
		}
	}
	m := must(t, small, messagesPath, `{"model":"m","metadata":{"x":1,"user_id":"u-2"},"messages":[]}`)
	if m.Session != "u-2" {
		t.Errorf("session of Messages %q", m.Session)
	}
	// B13 i: stream_options of any type are the engine's affair.
	for _, o := range []string{`{"include_usage":"true"}`, `null`, `[]`, `7`} {
		must(t, small, chatPath, `{"model":"m","stream":true,"stream_options":`+o+`,"messages":[]}`)
	}
}

// TestRequestHoldsNoBody: after parsing nothing in the request points into the body.
func TestRequestHoldsNoBody(t *testing.T) {
	body := []byte(`{"model":"demo","user":"u","cache_salt":"s","messages":[{"role":"user","content":"hello, world"}]}`)
	var r Request
	if err := parser(t, small).Parse(&r, head(chatPath, "x-session-id", ""), body); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got, err := json.Marshal(&r); err != nil || string(got) != string(want) {
		t.Errorf("after the body went: %s, before: %s", got, want)
	}
	for f, v := range r.work.fields {
		if v != nil {
			t.Errorf("field %d still points into the body", f)
		}
	}
}
