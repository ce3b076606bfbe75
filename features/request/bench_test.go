package request

import (
	"encoding/json"
	"strings"
	"testing"
)

// chatBody is a chat of so many bytes in the way of real ones: a system prompt, turns of text with
// a line break every 60 bytes or so, some quotes and some characters that are not ASCII.
func chatBody(tb testing.TB, size int) []byte {
	tb.Helper()
	line := "The quick brown fox jumps over the lazy dog, and then goes on.\n"
	text := strings.Repeat(line, 33) + "na\u00efve caf\u00e9\n"
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body := struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Stream   bool      `json:"stream"`
		Max      int       `json:"max_tokens"`
	}{Model: "llama-3.1-8b", Stream: true, Max: 256}
	roles := []string{"system", "user", "assistant"}
	for n := 0; ; n++ {
		b, err := json.Marshal(body)
		if err != nil {
			tb.Fatal(err)
		}
		if room := size - len(b); room <= 64 {
			return b
		} else if room < len(text) {
			text = text[:room-60]
		}
		body.Messages = append(body.Messages, message{roles[min(n, 1+n%2)], text})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, bench := range []struct {
		name string
		size int
	}{{"2KB", 2 << 10}, {"220KB", 220 << 10}} {
		b.Run(bench.name, func(b *testing.B) {
			body := chatBody(b, bench.size)
			p := parser(b, Config{})
			h := head(chatPath, "x-request-id", "0b5c1c1e-5a3c-4b8e-9c55-2d2f8a6f2a11", "x-session-id", "s-1234")
			var r Request
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r.Reset()
				if err := p.Parse(&r, h, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestParseAllocs: a request used again allocates the identifiers it keeps, and nothing else.
func TestParseAllocs(t *testing.T) {
	body := chatBody(t, 20<<10)
	p := parser(t, Config{Rewrite: map[string]string{"llama-3.1-8b": "real"}})
	var r Request
	for want, h := range map[float64]*Head{
		0: head(chatPath),
		2: head(chatPath, "x-request-id", "0b5c1c1e", "x-session-id", "s-1234", "x-llm-d-slo-ttft-ms", "250"),
	} {
		if got := testing.AllocsPerRun(50, func() {
			r.Reset()
			if err := p.Parse(&r, h, body); err != nil {
				t.Fatal(err)
			}
			r.AddAnswer(body[:1000])
			r.Splice(body)
		}); got != want {
			t.Errorf("%v allocations, want %v", got, want)
		}
	}
}
