package request

import (
	"encoding/json"
	"testing"
)

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
