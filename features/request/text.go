package request

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"
	"unicode/utf8"
)

// sink takes decoded text: the chain of hashes, or one hash.
type sink interface {
	io.Writer
	io.StringWriter
}

// text writes what the string at i stands for, and returns the index behind it. A lone surrogate,
// which JSON can write and engines accept, becomes the three bytes it would have in UTF-8, which
// nothing else becomes.
func (k *work) text(w sink, b []byte, i int) int {
	buf, n := k.buf[:bufSize], 0
	for i++; ; {
		if n > bufSize-32 {
			_, _ = w.Write(buf[:n])
			n = 0
		}
		// Sixteen bytes are copied at once, and as many of them taken as are plain.
		for i+16 <= len(b) && n <= bufSize-32 {
			from, to := b[i:i+16], buf[n:n+16]
			x, y := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
			binary.LittleEndian.PutUint64(to, x)
			binary.LittleEndian.PutUint64(to[8:], y)
			plain, hit := 0, quoteOrSlash(x)
			if hit == 0 {
				plain, hit = 8, quoteOrSlash(y)
			}
			if hit == 0 {
				i += 16
				n += 16
				continue
			}
			plain += bits.TrailingZeros64(hit) / 8
			i += plain
			n += plain
			break
		}
		switch c := b[i]; c {
		case '"':
			_, _ = w.Write(buf[:n])
			return i + 1
		case '\\':
			if c = plainEscape[b[i+1]]; c != 0 {
				buf[n] = c
				n++
				i += 2
				continue
			}
			r, m := unescape(b[i:])
			n = len(appendRune(buf[:n], r))
			i += m
		default: // near the end of the body, or of the buffer
			buf[n] = c
			n++
			i++
		}
	}
}

// unescape decodes the escape that s begins with, and returns its length. Half of a surrogate pair
// alone is returned as it is.
func unescape(s []byte) (r rune, n int) {
	if c := plainEscape[s[1]]; c != 0 {
		return rune(c), 2
	}
	r = hex4(s[2:])
	if isHigh(r) && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if low := hex4(s[8:]); isLow(low) {
			return 0x10000 + (r-0xd800)<<10 + (low - 0xdc00), 12
		}
	}
	return r, 6
}

func isHigh(r rune) bool { return 0xd800 <= r && r < 0xdc00 }
func isLow(r rune) bool  { return 0xdc00 <= r && r < 0xe000 }

func hex4(s []byte) (r rune) {
	for _, c := range s[:4] {
		switch {
		case c <= '9':
			r = r<<4 + rune(c-'0')
		default:
			r = r<<4 + rune(c|0x20-'a'+10)
		}
	}
	return r
}

func appendRune(dst []byte, r rune) []byte {
	if isHigh(r) || isLow(r) {
		return append(dst, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(dst, r)
}

// appendText appends what the inside of a string, without its quotes, stands for.
func appendText(dst, s []byte) []byte {
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:n]...)
		r, m := unescape(s[n:])
		dst = appendRune(dst, r)
		s = s[n+m:]
	}
}

// name returns the name of a member without escapes, for comparing with names that are known; it
// is valid until the next call.
func (k *work) name(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 || len(raw) > 6*maxName {
		return raw
	}
	return appendText(k.buf[:0], raw)
}

// maxName is longer than any name that is known.
const maxName = 64

// canon writes a value as JSON of one form: no white space, every string with the fewest escapes.
// Numbers stand as they stood.
func (k *work) canon(w sink, v []byte) {
	from := 0 // start of what is written as it stands
	for i := 0; i < len(v); {
		switch v[i] {
		case ' ', '\n', '\r', '\t':
			_, _ = w.Write(v[from:i])
			i = skipSpace(v, i)
			from = i
		case '"':
			end := stringEnd(v, i)
			if bytes.IndexByte(v[i:end], '\\') >= 0 {
				_, _ = w.Write(v[from : i+1])
				k.canonText(w, v[i+1:end-1])
				from = end - 1
			}
			i = end
		default:
			i++
		}
	}
	_, _ = w.Write(v[from:])
}

// canonText writes the inside of a string, without its quotes, with the fewest escapes.
func (k *work) canonText(w sink, s []byte) {
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			_, _ = w.Write(s)
			return
		}
		_, _ = w.Write(s[:n])
		r, m := unescape(s[n:])
		_, _ = w.Write(appendQuotedRune(k.buf[:0], r))
		s = s[n+m:]
	}
}

const hexDigits = "0123456789abcdef"

// appendQuotedRune appends a character as it stands inside a JSON string of the fewest escapes.
func appendQuotedRune(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if r < 0x20 || isHigh(r) || isLow(r) {
		return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// appendQuoted appends text as a JSON string. What is no UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		dst = appendQuotedRune(dst, r)
	}
	return append(dst, '"')
}

// digest returns one hash of a value in its one form.
func (k *work) digest(v []byte) uint64 {
	k.sum.Reset()
	k.canon(&k.sum, v)
	return k.sum.Sum64()
}

// digestObject returns one hash of an object without the members of one name.
func (k *work) digestObject(v []byte, without string) uint64 {
	k.sum.Reset()
	k.canonObject(&k.sum, v, without)
	return k.sum.Sum64()
}

// canonObject writes an object in its one form, without the members of one name.
func (k *work) canonObject(w sink, v []byte, without string) {
	sep := `{"`
	c := cursor{b: v}
	for c.enter(); c.more(); {
		name := c.name()
		value := c.value()
		if string(k.name(name)) == without {
			continue
		}
		_, _ = w.WriteString(sep)
		k.canonText(w, name)
		_, _ = w.WriteString(`":`)
		k.canon(w, value)
		sep = `,"`
	}
	if sep == `{"` {
		_, _ = w.WriteString("{")
	}
	_, _ = w.WriteString("}")
}
