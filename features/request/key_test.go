package request

import (
	"strconv"
	"strings"
	"testing"
)

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

// TestKeyStable pins a key of every API: replicas of different versions, and recorded traces, must
// agree on them. A change here is a change of the format of keys.
func TestKeyStable(t *testing.T) {
	for _, c := range []struct {
		path, body string
		want       uint64 // last block
	}{
		{chatPath, `{"model":"m","tools":[{"name":"f"}],"messages":[{"role":"system","content":"terse"},{"role":"user","content":[{"type":"image","x":1},"hello, world"]}]}`, 0x2b413927654cfa6b},
		{completionPath, `{"model":"m","cache_salt":"s","prompt":"hello, world"}`, 0x3f40a82b0f988943},
		{completionPath, `{"model":"m","prompt":[1,2,3,4]}`, 0xf1a51108f97587e7},
		{responsesPath, `{"model":"m","instructions":"terse","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"role":"user","content":"hello, world"}]}`, 0x3fb606d085da8f0b},
		{messagesPath, `{"model":"m","system":"terse","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"hello, world"}]}]}`, 0x23c92da7e3429b52},
	} {
		blocks := key(t, c.path, c.body)
		if got := blocks[len(blocks)-1]; got != c.want {
			t.Errorf("%s %s: %#x, want %#x", c.path, c.body, got, c.want)
		}
	}
}
