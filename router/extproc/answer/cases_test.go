package answer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sse frames data as one event each.
func sse(data ...string) []byte {
	var b bytes.Buffer
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return b.Bytes()
}

const token = `{"choices":[{"index":0,"delta":{"content":"x"}}]}`

// answers are whole answers of every API with what they say.
var answers = []struct {
	name string
	form Form
	body []byte
	want result
}{
	// B13: usage oddities, each the end of its own stream.
	{"B13a usage and end marker apart", Events, sse(token, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, `[DONE]`),
		result{Tokens: 1, Usage: usageOf(7, -1, 3), Ended: true, Text: `"x"`}},
	{"B13c no usage", Events, sse(token, token, token, `[DONE]`),
		result{Tokens: 3, Usage: unknown, Ended: true, Text: `"x""x""x"`}},
	{"B13d usage null on every event", Events, sse(`{"choices":[{"delta":{"content":"x"}}],"usage":null}`, `{"choices":[{"delta":{"content":"y"},"finish_reason":"stop"}],"usage":null}`),
		result{Tokens: 2, Usage: unknown, Ended: true, Text: `"x""y"`}},
	{"B13e usage repeated", Events, sse(
		`{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`,
		`{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`,
		`{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, `[DONE]`),
		result{Tokens: 3, Usage: usageOf(7, -1, 3), Ended: true, Text: `"x""x""x"`}},
	{"B13f usage is a string", Events, sse(token, `{"usage":"n/a"}`, `[DONE]`),
		result{Tokens: 1, Usage: unknown, Ended: true, Text: `"x"`}},
	{"B13g types mixed", Events, sse(token, `{"usage":{"prompt_tokens":"12","prompt_tokens_details":7,"completion_tokens":3.0}}`, `[DONE]`),
		result{Tokens: 1, Usage: usageOf(12, -1, 3), Ended: true, Text: `"x"`}},
	{"B13h impossible", Events, sse(token, `{"usage":{"prompt_tokens":-1,"completion_tokens":1e12}}`, `[DONE]`),
		result{Tokens: 1, Usage: unknown, Ended: true, Odd: true, Text: `"x"`}},
	{"B13h one of two impossible", Document, []byte(`{"usage":{"prompt_tokens":5,"completion_tokens":1e400}}`),
		result{Usage: unknown, Ended: true, Odd: true}},
	{"B13j embeddings", Document, []byte(`{"object":"list","data":[{"embedding":[0.1,-2e-3]}],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":8}}}`),
		result{Usage: usageOf(10, 8, -1), Ended: true}},

	// B14: what is no token.
	{"B14 role only, empty, finish", Events, sse(`{"choices":[{"delta":{"role":"assistant","content":""}}]}`, `{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[],"reasoning":null}}]}`,
		`{"choices":[{"index":0,"text":""}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`),
		result{Usage: unknown, Ended: true}},
	{"B14 two choices", Events, sse(`{"choices":[{"index":1,"delta":{"content":"b"}}]}`, `{"choices":[{"delta":{"content":"a"},"index":0}]}`, `{"choices":[{"index":1,"delta":{"content":"c"}},{"index":0,"delta":{"content":"d"}}]}`, `[DONE]`),
		result{Tokens: 4, Usage: unknown, Ended: true, Text: `"a""d"`}},
	{"reasoning counts, and ends the text", Events, sse(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, `{"choices":[{"delta":{"reasoning":"hm"}}]}`, token, `[DONE]`),
		result{Tokens: 3, Usage: unknown, Ended: true}},
	{"tool calls count, and end the text", Events, sse(token, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"a"}}]}}]}`, token),
		result{Tokens: 4, Usage: unknown, Text: `"x"`}},
	{"completions", Events, sse(`{"choices":[{"index":0,"text":"a","finish_reason":null}]}`, `{"choices":[{"index":0,"text":"b","finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":2}}`),
		result{Tokens: 2, Usage: usageOf(4, -1, 2), Ended: true, Text: `"a""b"`}},

	// B16: usage spread over events, or nested.
	{"B16 messages", Events, []byte("event: message_start\ndata: " + `{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":25,"cache_read_input_tokens":16,"output_tokens":1}}}` + "\n\n" +
		"event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}` + "\n\n" +
		"event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}` + "\n\n" +
		"event: message_stop\ndata: " + `{"type":"message_stop"}` + "\n\n"),
		result{Tokens: 1, Usage: usageOf(25, 16, 9), Ended: true, Text: `"hi"`}},
	{"B16 messages, input repeated", Events, sse(`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":25,"output_tokens":9}}`, `{"type":"message_stop"}`),
		result{Usage: usageOf(25, -1, 9), Ended: true}},
	{"B16 messages, input lost at the end", Events, sse(`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":9}}`),
		result{Usage: usageOf(25, -1, 9), Ended: true}},
	{"messages: thinking and tool input", Events, sse(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}`, `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"s"}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`, `{"type":"message_stop"}`),
		result{Tokens: 2, Usage: unknown, Ended: true}},
	{"B16 messages document", Document, []byte(`{"type":"message","content":[{"type":"text","text":"hi"},{"type":"tool_use","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":25,"cache_read_input_tokens":16,"output_tokens":9}}`),
		result{Usage: usageOf(25, 16, 9), Ended: true, Text: `"hi"`}},
	{"B16 responses", Events, []byte("event: response.output_text.delta\ndata: " + `{"delta":"hey","type":"response.output_text.delta"}` + "\n\nevent: response.completed\ndata: " +
		`{"type":"response.completed","response":{"id":"r1","error":null,"usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":45}}}` + "\n\n"),
		result{Tokens: 1, Usage: usageOf(40, 32, 5), Ended: true, Text: `"hey"`}},
	{"responses: reasoning", Events, sse(`{"type":"response.reasoning_text.delta","delta":"hm"}`, `{"type":"response.output_text.delta","delta":"hey"}`, `{"type":"response.output_text.delta","delta":""}`),
		result{Tokens: 2, Usage: unknown}},
	{"B16 responses document", Document, []byte(`{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hey"}]}],"usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32},"output_tokens":5}}`),
		result{Usage: usageOf(40, 32, 5), Ended: true, Text: `"hey"`}},
	{"chat document", Document, []byte(`{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a\"b","tool_calls":[]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}` + "\n"),
		result{Usage: usageOf(3, -1, 2), Ended: true, Text: `"a\"b"`}},
	{"completions document", Document, []byte(`{"choices":[{"index":0,"text":"a"},{"index":1,"text":"b"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`),
		result{Usage: usageOf(3, -1, 2), Ended: true, Text: `"a"`}},

	// B17 and other ends that are none.
	{"B17b error event", Events, sse(token, token, `{"error":{"message":"engine dead","code":500}}`),
		result{Tokens: 2, Usage: unknown, Failed: true, Text: `"x""x"`}},
	{"error by object", Events, sse(`{"object":"error","message":"engine dead"}`), result{Usage: unknown, Failed: true}},
	{"error by event name", Events, []byte("event: error\ndata: overloaded\n\n"), result{Usage: unknown, Failed: true}},
	{"error null is none", Events, sse(`{"error":null,"choices":[{"delta":{"content":"x"}}]}`, `[DONE]`), result{Tokens: 1, Usage: unknown, Ended: true, Text: `"x"`}},
	{"response.failed", Events, sse(`{"type":"response.failed","response":{"error":{"code":"server_error"}}}`), result{Usage: unknown, Failed: true}},
	{"truncated stream", Events, sse(token), result{Tokens: 1, Usage: unknown, Text: `"x"`}},
	{"truncated document", Document, []byte(`{"choices":[{"message":{"content":"abc`), result{Usage: unknown}},
	{"truncated after usage", Document, []byte(`{"usage":{"prompt_tokens":3},"x":[`), result{Usage: usageOf(3, -1, -1)}},
	{"error document", Document, []byte(`{"error":{"message":"no"}}`), result{Usage: unknown, Ended: true, Failed: true}},
	{"end marker within text", Events, sse(`{"choices":[{"delta":{"content":"data: [DONE]\n\n"}}]}`), result{Tokens: 1, Usage: unknown, Text: `"data: [DONE]\n\n"`}},
	{"usage within text", Events, sse(`{"choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}`), result{Tokens: 1, Usage: unknown, Text: `"\"usage\":{\"prompt_tokens\":9}"`}},
	{"not ours", Opaque, sse(token), result{Usage: unknown, Ended: true}},
	{"byte order mark", Events, append([]byte("\xef\xbb\xbf"), sse(token)...), result{Tokens: 1, Usage: unknown, Text: `"x"`}},
	{"empty stream", Events, nil, result{Usage: unknown}},
	{"empty document", Document, nil, result{Usage: unknown}},
	{"HTML where JSON was promised", Document, []byte("<html>{}"), result{Usage: unknown}},
}

func TestAnswers(t *testing.T) {
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			if d := cmp.Diff(a.want, readAll(a.form, a.body).said()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestPartitionsDoNotMatter is the property of K5: the result depends on the bytes only.
func TestPartitionsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(answers).Draw(t, "answer")
		body := a.body
		if a.form == Events && rapid.Bool().Draw(t, "crlf") {
			body = bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))
		}
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(body)), 0, 12).Draw(t, "cuts")
		if d := cmp.Diff(readAll(a.form, body).said(), readAll(a.form, partition(body, cuts)...).said()); d != "" {
			t.Fatal(d)
		}
	})
}

// partition cuts b at the given offsets, in any order.
func partition(b []byte, cuts []int) [][]byte {
	at := make([]bool, len(b)+1)
	for _, c := range cuts {
		at[c] = true
	}
	var out [][]byte
	start := 0
	for i := 1; i <= len(b); i++ {
		if at[i] || i == len(b) {
			out = append(out, b[start:i])
			start = i
		}
	}
	return out
}

// TestB11LongEvents: a huge event is read; beyond the cap parsing stops and usage is unknown.
func TestB11LongEvents(t *testing.T) {
	long := strings.Repeat("y", 1<<20)
	b := sse(`{"choices":[{"delta":{"content":"`+long+`"}}]}`, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, `[DONE]`)
	chunks := func(b []byte) (out [][]byte) {
		for ; len(b) > 16000; b = b[16000:] {
			out = append(out, b[:16000])
		}
		return append(out, b)
	}
	got := readAll(Events, chunks(b)...)
	if got.Tokens != 1 || got.Usage != usageOf(1, -1, 1) || len(got.Text) != len(long)+2 {
		t.Errorf("an event of 1 MiB: %d tokens, usage %v, %d bytes of text", got.Tokens, got.Usage, len(got.Text))
	}
	for name, over := range map[string][]byte{
		"line": append(sse(token, `{"usage":{"prompt_tokens":1}}`), append(append([]byte("data: "), bytes.Repeat([]byte("z"), maxLine)...), sse("", token, "[DONE]")...)...),
		"data": append(sse(token, `{"usage":{"prompt_tokens":1}}`), append(bytes.Repeat(append([]byte("data: "), append(bytes.Repeat([]byte("z"), 9990), '\n')...), maxLine/9990+1), sse(token)...)...),
	} {
		got := readAll(Events, chunks(over)...)
		if want := (result{Tokens: 1, Usage: unknown, Ended: true, Text: `"x"`}); !cmp.Equal(want, got.said()) {
			t.Errorf("%s over the cap: %s", name, cmp.Diff(want, got.said()))
		}
	}
}

// TestLongDocuments: usage is found in the end of a document that is too long to keep.
func TestLongDocuments(t *testing.T) {
	vector := strings.Repeat("0.123456,", 300_000)
	body := []byte(`{"data":[{"embedding":[` + vector + `1]}],"note":"\"usage\":{}", "usage" : {"prompt_tokens":9,"total_tokens":9}, "kind":"usage"}`)
	for _, size := range []int{1000, 1 << 14, 1 << 16, len(body)} {
		var chunks [][]byte
		for b := body; len(b) > 0; b = b[min(size, len(b)):] {
			chunks = append(chunks, b[:min(size, len(b))])
		}
		want := result{Usage: usageOf(9, -1, -1), Ended: true}
		if d := cmp.Diff(want, readAll(Document, chunks...).said()); d != "" {
			t.Errorf("chunks of %d: %s", size, d)
		}
	}
}

// TestUsageFieldsOfAnyType is the sweep of K6: every figure in every type, and none crashes or lies.
func TestUsageFieldsOfAnyType(t *testing.T) {
	fields := []string{"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "prompt_tokens_details", "input_tokens_details", "cache_read_input_tokens", "cached_tokens"}
	values := map[string]bool{ // value: is a count
		`null`: false, `"x"`: false, `""`: false, `true`: false, `[]`: false, `[1]`: false, `{}`: false, `{"a":1}`: false, `7`: true, `"7"`: true, `7.0`: true,
	}
	for _, f := range fields {
		for v, count := range values {
			for _, body := range []string{`{"usage":{"` + f + `":` + v + `}}`, `{"usage":{"prompt_tokens_details":{"` + f + `":` + v + `}}}`} {
				got := readAll(Document, []byte(body))
				u := got.Usage
				for _, n := range []int{u.Prompt, u.Cached, u.Output} {
					if n != -1 && (!count || n != 7) {
						t.Errorf("%s: usage %+v", body, u)
					}
				}
				if got.Odd {
					t.Errorf("%s: taken for impossible", body)
				}
			}
		}
	}
}
