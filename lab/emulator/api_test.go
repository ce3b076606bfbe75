package emulator

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// keys lists the member names of a JSON document in order, nested ones with their path.
func keys(t *testing.T, doc string) []string {
	t.Helper()
	d := jsontext.NewDecoder(strings.NewReader(doc))
	var out []string
	for {
		tok, err := d.ReadToken()
		if err != nil {
			return out
		}
		if kind, _ := d.StackIndex(d.StackDepth()); kind == '{' && tok.Kind() == '"' {
			if _, n := d.StackIndex(d.StackDepth()); n%2 == 1 {
				out = append(out, string(d.StackPointer()))
			}
		}
	}
}

// The stream has the events of a recorded one of vLLM 0.32: the same members in the same order.
func TestChatStreamLooksLikeVLLM(t *testing.T) {
	data, err := os.ReadFile(shared(t, "fixtures/valid/vllm_0_32_chat_stream.sse"))
	if err != nil {
		t.Fatal(err)
	}
	recorded := &capture{}
	recorded.body.Write(data)
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		c := call(t.Context(), e, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`)
		if got := c.header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
			t.Errorf("content type %q", got)
		}
		want, got := recorded.events(t), c.events(t)
		if len(want) != len(got) {
			t.Fatalf("%d events, vLLM sends %d", len(got), len(want))
		}
		for i := range want {
			w := keys(t, want[i])
			g := slices.DeleteFunc(keys(t, got[i]), func(k string) bool { return strings.Contains(k, "prompt_tokens_details") }) // a flag of vLLM that the recording did not have
			if d := cmp.Diff(w, g); d != "" {
				t.Errorf("event %d (-vLLM +ours):\n%s", i, d)
			}
		}
	})
}

var volatile = regexp.MustCompile(`"(cmpl|chatcmpl)-[^"]*"|"created":\d+|"content":"[^"]+"|"text":"[^"]+"`)

func TestCompletionStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		c := call(t.Context(), e, "POST", "/v1/completions", `{"model":"llama-3.1-8b","prompt":"hello","max_tokens":2,"stream":true}`)
		got := volatile.ReplaceAllString(c.String(), "*")
		want := `data: {"id":*,"object":"text_completion",*,"model":"llama-3.1-8b","choices":[{"index":0,*,"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}

data: {"id":*,"object":"text_completion",*,"model":"llama-3.1-8b","choices":[{"index":0,*,"logprobs":null,"finish_reason":"length","stop_reason":null,"prompt_token_ids":null,"token_ids":null}],"system_fingerprint":"vllm-0.32.0-emulated"}

data: [DONE]

`
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// Streamed and whole answers are one text, and a second time most of the prompt is cached.
func TestSameRequestSameAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		prompt := strings.Repeat("0123456789abcdef", 100) // 400 tokens, 25 blocks
		body := fmt.Sprintf(`{"messages":[{"role":"system","content":%q},{"role":"user","content":"why?"}],"max_tokens":40%%s}`, prompt)
		first := call(t.Context(), e, "POST", "/v1/chat/completions", fmt.Sprintf(body, "")).answer(t)
		c := call(t.Context(), e, "POST", "/v1/chat/completions", fmt.Sprintf(body, `,"stream":true,"stream_options":{"include_usage":true}`))
		var text strings.Builder
		var u usage
		for _, data := range c.events(t) {
			var ev struct {
				Choices []struct {
					Delta struct {
						Content string `json:"content"`
					} `json:"delta"`
				} `json:"choices"`
				Usage *usage `json:"usage"`
			}
			if data == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(data), &ev); err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			for _, ch := range ev.Choices {
				text.WriteString(ch.Delta.Content)
			}
			if ev.Usage != nil {
				u = *ev.Usage
			}
		}
		whole := first.Choices[0].Message.Content
		if text.String() != whole || len(whole) != 40*tokenBytes {
			t.Errorf("streamed %q, whole %q", text.String(), whole)
		}
		// 2+400+1 for the system message, 2+1+1 for the question, 2 to begin the answer
		if first.Usage != (usage{Prompt: 409, Completion: 40, Total: 449}) {
			t.Errorf("first usage %+v", first.Usage)
		}
		want := usage{Prompt: 409, Completion: 40, Total: 449}
		want.Details.Cached = 400 // whole blocks of 16, the last token always computed
		if u != want {
			t.Errorf("second usage %+v, want %+v", u, want)
		}
	})
}

// An answer that comes back in the next turn is found in the cache with the prompt.
func TestNextTurnHitsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		turn := `{"role":"user","content":"` + strings.Repeat("abcd", 200) + `"}`
		first := call(t.Context(), e, "POST", "/v1/chat/completions", `{"messages":[`+turn+`],"max_tokens":320}`).answer(t)
		next := call(t.Context(), e, "POST", "/v1/chat/completions",
			`{"messages":[`+turn+`,{"role":"assistant","content":"`+first.Choices[0].Message.Content+`"},{"role":"user","content":"go on"}],"max_tokens":1}`).answer(t)
		// 203+2 prompt and 320 answer tokens; the last answer token's KV is never computed
		if got := next.Usage.Details.Cached; got != 512 {
			t.Errorf("%d tokens cached, want 512", got)
		}
	})
}

// Requests that name another model, adapter or salt share no cache.
func TestB25WhatSeparatesPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{Adapters: []string{"sql"}})
		prompt := `"prompt":"` + strings.Repeat("abcd", 160) + `","max_tokens":1`
		for i, c := range []struct {
			fields string
			cached int
		}{
			{``, 0}, {``, 144}, {`,"cache_salt":"a"`, 0}, {`,"cache_salt":"a"`, 144}, {`,"cache_salt":"b"`, 0},
			{`,"model":"sql"`, 0}, {`,"model":"sql"`, 144}, {`,"model":"llama-3.1-8b"`, 144}, {`,"model":"sql","cache_salt":"a"`, 0},
		} {
			if got := call(t.Context(), e, "POST", "/v1/completions", "{"+prompt+c.fields+"}").answer(t).Usage.Details.Cached; got != c.cached {
				t.Errorf("request %d with %s: %d tokens cached, want %d", i, c.fields, got, c.cached)
			}
		}
	})
}

func TestChoicesAndPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		a := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":["one prompt","and another"],"n":3,"max_tokens":8}`).answer(t)
		texts := map[string]bool{}
		for _, c := range a.Choices {
			texts[c.Text] = true
		}
		if len(a.Choices) != 6 || len(texts) != 6 {
			t.Errorf("%d choices, %d different", len(a.Choices), len(texts))
		}
		if a.Usage.Prompt != 3+3 || a.Usage.Completion != 48 {
			t.Errorf("usage %+v", a.Usage)
		}
		c := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":[5,6,7],"n":2,"max_tokens":4,"stream":true}`)
		if n := len(c.events(t)); n != 2*4+1 {
			t.Errorf("%d events", n)
		}
	})
}

func TestAnswerLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		for name, c := range map[string]struct {
			path, fields, reason string
			low, high            int
		}{
			"cap":                {"/v1/chat/completions", `"max_tokens":7`, "length", 7, 7},
			"new name of cap":    {"/v1/chat/completions", `"max_tokens":7,"max_completion_tokens":9`, "length", 9, 9},
			"drawn":              {"/v1/chat/completions", `"seed":1`, "stop", 16, 512},
			"drawn, at least":    {"/v1/chat/completions", `"min_tokens":600`, "stop", 600, 600},
			"asked for":          {"/v1/chat/completions", `"max_tokens":100,"vllm_xargs":{"output_tokens":33}`, "stop", 33, 33},
			"asked beyond cap":   {"/v1/chat/completions", `"max_tokens":20,"vllm_xargs":{"output_tokens":33}`, "length", 20, 20},
			"completion default": {"/v1/completions", `"seed":1`, "length", 16, 16},
		} {
			a := call(t.Context(), e, "POST", c.path, `{"prompt":"x","messages":[{"role":"user","content":"x"}],`+c.fields+`}`).answer(t)
			if n := a.Usage.Completion; n < c.low || n > c.high || a.Choices[0].Reason != c.reason {
				t.Errorf("%s: %d tokens, %q; want %d to %d, %q", name, n, a.Choices[0].Reason, c.low, c.high, c.reason)
			}
		}
	})
}

func TestMalformedRequests(t *testing.T) {
	const chat, text = "/v1/chat/completions", "/v1/completions"
	ok := `"messages":[{"role":"user","content":"x"}]`
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{MaxLen: 100, MaxBody: 10_000})
		for name, c := range map[string]struct {
			path, body string
			status     int
			kind       string
		}{
			"empty":               {chat, ``, 400, "BadRequestError"},
			"not JSON":            {chat, `hello`, 400, "BadRequestError"},
			"truncated":           {chat, `{"messages":[{"role":"user","content":"x`, 400, "BadRequestError"},
			"trailing data":       {chat, `{` + ok + `}{}`, 400, "BadRequestError"},
			"array":               {chat, `[]`, 400, "BadRequestError"},
			"no messages":         {chat, `{"model":"llama-3.1-8b"}`, 400, "BadRequestError"},
			"messages a string":   {chat, `{"messages":"x"}`, 400, "BadRequestError"},
			"no role":             {chat, `{"messages":[{"content":"x"}]}`, 400, "BadRequestError"},
			"content a number":    {chat, `{"messages":[{"role":"user","content":5}]}`, 400, "BadRequestError"},
			"part without type":   {chat, `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`, 400, "BadRequestError"},
			"part not an object":  {chat, `{"messages":[{"role":"user","content":["x"]}]}`, 400, "BadRequestError"},
			"unknown model":       {chat, `{"model":"gpt-5",` + ok + `}`, 404, "NotFoundError"},
			"max_tokens zero":     {chat, `{` + ok + `,"max_tokens":0}`, 400, "BadRequestError"},
			"max_tokens text":     {chat, `{` + ok + `,"max_tokens":"5"}`, 400, "BadRequestError"},
			"max_tokens too long": {chat, `{` + ok + `,"max_tokens":100}`, 400, "BadRequestError"},
			"min over max":        {chat, `{` + ok + `,"max_tokens":5,"min_tokens":6}`, 400, "BadRequestError"},
			"n zero":              {chat, `{` + ok + `,"n":0}`, 400, "BadRequestError"},
			"n huge":              {chat, `{` + ok + `,"n":1000000}`, 400, "BadRequestError"},
			"n times prompts":     {text, `{"prompt":["a","b","c"],"n":100}`, 400, "BadRequestError"},
			"length not a number": {chat, `{` + ok + `,"vllm_xargs":{"output_tokens":"x"}}`, 400, "BadRequestError"},
			"length negative":     {chat, `{` + ok + `,"vllm_xargs":{"output_tokens":-1}}`, 400, "BadRequestError"},
			"prompt too long":     {text, `{"prompt":"` + strings.Repeat("a", 500) + `"}`, 400, "BadRequestError"},
			"no prompt":           {text, `{}`, 400, "BadRequestError"},
			"empty prompt":        {text, `{"prompt":""}`, 400, "BadRequestError"},
			"no ids":              {text, `{"prompt":[]}`, 400, "BadRequestError"},
			"negative id":         {text, `{"prompt":[-1]}`, 400, "BadRequestError"},
			"prompt an object":    {text, `{"prompt":{}}`, 400, "BadRequestError"},
			"one prompt empty":    {text, `{"prompt":["a",""]}`, 400, "BadRequestError"},
			"body too long":       {text, `{"prompt":"` + strings.Repeat("a", 20_000) + `"}`, 413, "BadRequestError"},
		} {
			got := call(t.Context(), e, "POST", c.path, c.body)
			var p struct {
				Error struct {
					Message string `json:"message"`
					Type    string `json:"type"`
					Code    int    `json:"code"`
				} `json:"error"`
			}
			if err := json.Unmarshal([]byte(got.String()), &p); err != nil {
				t.Errorf("%s: %v: %s", name, err, got)
			}
			if got.status != c.status || p.Error.Code != c.status || p.Error.Type != c.kind || p.Error.Message == "" {
				t.Errorf("%s: status %d, %s; want %d, %s", name, got.status, got, c.status, c.kind)
			}
		}
		if e.Open() != 0 || e.Stats().Submitted != 0 {
			t.Error("a refused request reached the engine")
		}
		for _, path := range []string{"/", "/v1/chat", "/v1/embeddings"} {
			if c := call(t.Context(), e, "POST", path, "{}"); c.status != http.StatusNotFound {
				t.Errorf("%s: %d", path, c.status)
			}
		}
	})
}

// Legal forms that a strict reader would refuse.
func TestLiberalForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		for _, messages := range []string{
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]`,
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"42"}]`,
			`[{"role":"developer","content":"x","name":"y","unknown":1}]`,
		} {
			for _, more := range []string{`,"tools":[{"type":"function"}]`, `,"n":null,"max_tokens":null,"stream":null,"stop":["x"],"temperature":0.5,"zzz":{}`, `,"max_tokens":1,"max_tokens":2`} {
				c := call(t.Context(), e, "POST", "/v1/chat/completions", `{"messages":`+messages+more+`}`)
				if a := c.answer(t); a.Usage.Completion < 1 {
					t.Errorf("%s: %s", messages+more, c)
				}
			}
		}
	})
}

func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{Adapters: []string{"sql", "chat"}})
		c := call(t.Context(), e, "GET", "/v1/models", "")
		var got struct {
			Data []struct {
				ID     string  `json:"id"`
				Parent *string `json:"parent"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(c.String()), &got); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, m := range got.Data {
			ids = append(ids, m.ID)
		}
		if !slices.Equal(ids, []string{"llama-3.1-8b", "chat", "sql"}) || got.Data[0].Parent != nil || *got.Data[1].Parent != "llama-3.1-8b" {
			t.Errorf("models %s", c)
		}
		body := `{"model":%q,"prompt":"` + strings.Repeat("x", 640) + `","max_tokens":1}`
		for _, model := range []string{"sql", "chat", "sql", "llama-3.1-8b"} {
			c := call(t.Context(), e, "POST", "/v1/completions", fmt.Sprintf(body, model))
			if cached := c.answer(t).Usage.Details.Cached; (cached > 0) != (model == "sql" && e.Stats().Completed == 3) {
				t.Errorf("%s: %d tokens cached: adapters share no cache", model, cached)
			}
			if !bytes.Contains([]byte(c.String()), []byte(`"model":"`+model+`"`)) {
				t.Errorf("the answer does not name %s: %s", model, c)
			}
		}
	})
}
