package request

import (
	"encoding/binary"
	"math/bits"
)

// cursor steps through JSON that checkValue has accepted, and checks nothing again. Only what is
// asked for is read, and long texts but once.
type cursor struct {
	b []byte
	i int
}

// peek returns the first byte of the value the cursor is at.
func (c *cursor) peek() byte { return c.b[c.i] }

// enter steps into the object or list the cursor is at.
func (c *cursor) enter() { c.i++ }

// more moves to the next member or element, or behind the end of the object or list and returns
// false.
func (c *cursor) more() bool {
	i := skipSpace(c.b, c.i)
	if c.b[i] == ',' {
		i = skipSpace(c.b, i+1)
	}
	if c.b[i] == '}' || c.b[i] == ']' {
		c.i = i + 1
		return false
	}
	c.i = i
	return true
}

// name returns the name of the member the cursor is at, without quotes but with its escapes, and
// moves to the value.
func (c *cursor) name() []byte {
	start := c.i + 1
	end := stringEnd(c.b, c.i)
	i := skipSpace(c.b, end)  // at the colon
	c.i = skipSpace(c.b, i+1) // at the value
	return c.b[start : end-1]
}

// value returns the value the cursor is at, and steps over it.
func (c *cursor) value() []byte {
	start := c.i
	c.i = valueEnd(c.b, start)
	return c.b[start:c.i]
}

// stringEnd returns the index behind the string whose opening quote is at i.
func stringEnd(b []byte, i int) int {
	for i++; ; {
		for i+8 <= len(b) {
			hit := quoteOrSlash(binary.LittleEndian.Uint64(b[i:]))
			if hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// quoteOrSlash marks, of eight bytes, the first quote or backslash by the high bit of its byte, which
// is the lowest bit set. Bits above that one may be wrong.
func quoteOrSlash(x uint64) uint64 {
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return ((quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// valueEnd returns the index behind the value at i.
func valueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
			continue
		default:
			i = scalarEnd(b, i)
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// scalarEnd returns the index behind the number or literal at i.
func scalarEnd(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ',', ']', '}', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// kind names what a value is by its first byte, for messages.
func kind(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// absent reports whether a value is missing or null, which engines take for the same.
func absent(value []byte) bool { return len(value) == 0 || value[0] == 'n' }
