package request

import (
	"runtime"
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
