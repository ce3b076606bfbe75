package answer

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/router"
)

// transcript is a Text that writes down what it is told.
type transcript struct {
	bytes.Buffer
	ended bool
}

func (t *transcript) AddQuoted(raw []byte) {
	if !t.ended {
		t.Write(raw)
	}
}

func (t *transcript) EndAnswer() { t.ended = true }

// result is everything a reader can say about an answer.
type result struct {
	Tokens              int
	Usage               router.Usage
	Ended, Failed, Odd  bool
	Text                string
	First, FirstByBytes int // chunk and byte offset at whose arrival the first token was complete
}

// readAll reads an answer in the given chunks.
func readAll(form Form, chunks ...[]byte) result {
	var r Reader
	var t transcript
	r.Reset(form, &t)
	res := result{First: -1, FirstByBytes: -1}
	at := 0
	for i, c := range chunks {
		own := bytes.Clone(c)
		n := r.Write(own)
		for j := range own {
			own[j] = 'x' // the reader must not keep the chunk
		}
		at += len(c)
		if n > 0 && res.First < 0 {
			res.First, res.FirstByBytes = i, at
		}
		res.Tokens += n
	}
	res.Tokens += r.Close()
	res.Usage, res.Ended, res.Failed, res.Odd, res.Text = r.Usage(), r.Ended(), r.Failed(), r.Odd(), t.String()
	return res
}

// facts without the positions, which depend on the cuts.
func (r result) said() result {
	r.First, r.FirstByBytes = 0, 0
	return r
}

func usageOf(prompt, cached, output int) router.Usage {
	return router.Usage{Prompt: prompt, Cached: cached, Output: output}
}

func TestRealStreamOfVLLM(t *testing.T) {
	b, err := os.ReadFile("testdata/vllm_0_32_chat_stream.sse")
	if err != nil {
		t.Fatal(err)
	}
	want := result{Tokens: 5, Usage: usageOf(11, -1, 5), Ended: true, Text: `"returning""both"" miss"" presubmit"" regardless"`}
	if d := cmp.Diff(want, readAll(Events, b).said()); d != "" {
		t.Error(d)
	}
}

// events of B11: two content events, a finish, usage, the end marker.
var b11 = []string{
	`{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
	`{"id":"c1","choices":[{"index":0,"delta":{"content":"Hé"}}]}`,
	`{"id":"c1","choices":[{"index":0,"delta":{"content":"llo"}}]}`,
	`{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
	`{"id":"c1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13}}`,
	`[DONE]`,
}

// TestB11SSEFramingMatrix reads one stream in every framing that servers and networks give it.
func TestB11SSEFramingMatrix(t *testing.T) {
	want := result{Tokens: 2, Usage: usageOf(11, -1, 2), Ended: true, Text: `"Hé""llo"`}
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		for _, field := range []string{"data: ", "data:"} {
			for _, extra := range []string{"none", "fields", "split"} {
				for _, end := range []string{"blank", "bare"} {
					for _, cut := range []string{"whole", "event", "byte", "utf8", "crlf", "pairs"} {
						name := fmt.Sprintf("%q/%s/%s/%s/%s", eol, field, extra, end, cut)
						t.Run(name, func(t *testing.T) {
							events := framed(eol, field, extra, end)
							got := readAll(Events, cutBy(cut, events)...)
							if d := cmp.Diff(want, got.said()); d != "" {
								t.Error(d)
							}
							first := len(strings.Join(events[:3], ""))
							if eol == "\r\n" {
								first-- // a blank line is over at its CR
							}
							if got.FirstByBytes < first || cut == "byte" && got.FirstByBytes != first {
								t.Errorf("first token seen after %d bytes, complete after %d", got.FirstByBytes, first)
							}
						})
					}
				}
			}
		}
	}
}

// framed writes the stream event by event; the first element is the heartbeat comment.
func framed(eol, field, extra, end string) []string {
	out := []string{": keep-alive" + eol + eol}
	for i, data := range b11 {
		s := field + data + eol
		switch {
		case extra == "fields":
			s = "event: message" + eol + "id: 7" + eol + "retry: 100" + eol + s
		case extra == "split" && i < 5: // JSON may break between its tokens
			at := strings.Index(data, ",") + 1
			s = field + data[:at] + eol + field + data[at:] + eol
		}
		if i == len(b11)-1 && end == "bare" {
			s = strings.TrimSuffix(s, eol)
		} else {
			s += eol
		}
		out = append(out, s)
	}
	return out
}

func cutBy(how string, events []string) [][]byte {
	all := []byte(strings.Join(events, ""))
	var out [][]byte
	switch how {
	case "whole":
		return [][]byte{all}
	case "event":
		for _, e := range events {
			out = append(out, []byte(e))
		}
	case "byte":
		for i := range all {
			out = append(out, all[i:i+1])
		}
	case "utf8":
		at := bytes.IndexByte(all, 0xc3) + 1
		return [][]byte{all[:at], all[at:]}
	case "crlf":
		start := 0
		for i := 1; i < len(all); i++ {
			if all[i-1] == '\r' && all[i] == '\n' {
				out = append(out, all[start:i])
				start = i
			}
		}
		return append(out, all[start:])
	case "pairs":
		for i := 0; i < len(events); i += 2 {
			out = append(out, []byte(strings.Join(events[i:min(i+2, len(events))], "")))
		}
	}
	return out
}
