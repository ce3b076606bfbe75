package telemetry

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what one untrusted string may take in a log line or a label, in bytes.
const maxText = 256

// Clean makes a string safe to show: every character that is not printable (control characters, line
// and paragraph separators, changes of writing direction) and every byte that is no UTF-8 is
// escaped, and what is longer than 256 bytes is cut, with its length. Clean text is returned as it is.
func Clean(s string) string {
	if len(s) <= maxText && printable(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if b.Len() >= maxText {
			b.WriteString("… (")
			b.WriteString(strconv.Itoa(len(s)))
			b.WriteString(" bytes)")
			break
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			const hex = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(hex[s[i]>>4])
			b.WriteByte(hex[s[i]&15])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

func printable(s string) bool {
	for i, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}
