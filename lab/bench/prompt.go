package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// prompts makes request bodies of about a given size: chats whose first half is one of a few shared
// beginnings, as system prompts and documents are, and whose second half nobody else has.
type prompts struct {
	bodies [][]byte
	marks  []int // where a body is made different from all others
}

const (
	sharedBeginnings = 32
	markDigits       = 12
)

// newPrompts makes as many bodies as there are shared beginnings.
func newPrompts(size int, rng *rand.Rand) *prompts {
	const head, middle, tail = `{"model":"demo","max_tokens":256,"stream":false,"messages":[{"role":"system","content":"`, `"},{"role":"user","content":"`, `"}]}`
	p := &prompts{}
	text := max(size-len(head)-len(middle)-len(tail)-markDigits, 2)
	for range sharedBeginnings {
		var b bytes.Buffer
		b.WriteString(head)
		words(&b, text/2, rng)
		b.WriteString(middle)
		p.marks = append(p.marks, b.Len())
		fmt.Fprintf(&b, "%0*d", markDigits, 0)
		words(&b, text-text/2, rng)
		b.WriteString(tail)
		p.bodies = append(p.bodies, b.Bytes())
	}
	return p
}

// words writes n bytes of lower-case words.
func words(b *bytes.Buffer, n int, rng *rand.Rand) {
	for range n {
		if rng.IntN(6) == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteByte(byte('a' + rng.IntN(26)))
	}
}

// mark makes body i different from every other that was ever marked with another number.
func (p *prompts) mark(i int, n uint64) {
	digits := p.bodies[i][p.marks[i]:][:markDigits]
	for at := markDigits - 1; at >= 0; at-- {
		digits[at] = byte('0' + n%10)
		n /= 10
	}
}

// completion is a short answer to a prompt of so many bytes, with the usage that vLLM reports: four
// bytes a token, and the shared half found in the cache.
func completion(size int) []byte {
	prompt := size / 4
	return fmt.Appendf(nil, `{"id":"chatcmpl-81ecb2ace390374c","object":"chat.completion","created":1795957735,"model":"demo",`+
		`"choices":[{"index":0,"message":{"role":"assistant","content":"It is the second one, as the document says in its last part."},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":16,"prompt_tokens_details":{"cached_tokens":%d}}}`, prompt, prompt+16, prompt/2/16*16)
}
