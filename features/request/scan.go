package request

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The scanner below checks JSON as RFC 8259 has it, at several bytes per cycle, and steps over
// values without building anything. It exists because bodies are read twice (the chain of hashes
// begins with what often stands last, the tools and the salt) and a general decoder spends more on
// one reading than the whole budget; it accepts exactly what package jsontext accepts, duplicate
// names aside, which its fuzz test holds it to.

// maxDepth bounds nesting. Engines' own limit is 200 levels.
const maxDepth = 128

// fault is what is wrong with a document.
type fault uint8

const (
	noFault fault = iota
	cutOff        // ends too early
	badSyntax
	badUTF8
	tooDeep
)

// skipSpace steps over insignificant white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// checkValue steps over the value at i, checking it, and returns the index behind it, or that of
// the fault.
func checkValue(b []byte, i int) (int, fault) {
	var isObject [maxDepth / 64]uint64
	depth := 0
	for {
		// A value begins at i.
		if i >= len(b) {
			return i, cutOff
		}
		var f fault
		switch c := b[i]; c {
		case '{', '[':
			if depth == maxDepth {
				return i, tooDeep
			}
			bit := uint64(1) << (depth % 64)
			isObject[depth/64] &^= bit
			depth++
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // ']' and '}' both stand two after their opening
				i++
				depth--
				break
			}
			if c == '[' {
				continue
			}
			isObject[(depth-1)/64] |= bit
			if i, f = checkName(b, i); f != noFault {
				return i, f
			}
			continue
		case '"':
			i, f = checkString(b, i)
		case 't':
			i, f = checkLiteral(b, i, "true")
		case 'f':
			i, f = checkLiteral(b, i, "false")
		case 'n':
			i, f = checkLiteral(b, i, "null")
		default:
			i, f = checkNumber(b, i)
		}
		if f != noFault {
			return i, f
		}
		// A value has ended: close what ends with it, up to the next value.
		for {
			if depth == 0 {
				return i, noFault
			}
			i = skipSpace(b, i)
			if i >= len(b) {
				return i, cutOff
			}
			object := isObject[(depth-1)/64]>>((depth-1)%64)&1 == 1
			if b[i] == ',' {
				i = skipSpace(b, i+1)
				if object {
					if i, f = checkName(b, i); f != noFault {
						return i, f
					}
				}
				break
			}
			if object && b[i] != '}' || !object && b[i] != ']' {
				return i, badSyntax
			}
			i++
			depth--
		}
	}
}

// checkName steps over a member's name, its colon and the space around them.
func checkName(b []byte, i int) (int, fault) {
	if i >= len(b) {
		return i, cutOff
	}
	if b[i] != '"' {
		return i, badSyntax
	}
	i, f := checkString(b, i)
	if f != noFault {
		return i, f
	}
	i = skipSpace(b, i)
	if i >= len(b) {
		return i, cutOff
	}
	if b[i] != ':' {
		return i, badSyntax
	}
	return skipSpace(b, i+1), noFault
}

// checkString steps over the string whose opening quote is at i.
func checkString(b []byte, i int) (int, fault) {
	i++
	start, foreign := i, -1 // where the first byte stands that is not ASCII
	watch := uint64(highs)  // for it, until it is found
	for {
		for i+16 <= len(b) {
			w := b[i : i+16]
			x, y := binary.LittleEndian.Uint64(w), binary.LittleEndian.Uint64(w[8:])
			hit := quoteOrSlash(x) | (x-ones*0x20)&^x&highs | x&watch
			hit2 := quoteOrSlash(y) | (y-ones*0x20)&^y&highs | y&watch
			if hit|hit2 == 0 {
				i += 16
				continue
			}
			if hit == 0 {
				hit = hit2
				i += 8
			}
			i += bits.TrailingZeros64(hit) / 8
			break
		}
		if i >= len(b) {
			return i, cutOff
		}
		switch c := b[i]; {
		case c == '\\':
			if i+1 < len(b) && plainEscape[b[i+1]] != 0 {
				i += 2
				continue
			}
			if f := checkHexEscape(b, i); f != noFault {
				return i, f
			}
			i += 6
		case c == '"':
			if foreign >= 0 && !utf8.Valid(b[foreign:i]) {
				return badByte(b, start), badUTF8
			}
			return i + 1, noFault
		case c < 0x20:
			return i, badSyntax
		case c >= utf8.RuneSelf && foreign < 0:
			foreign, watch = i, 0
		default: // near the end of the body
			i++
		}
	}
}

// plainEscape is what the escapes of two characters stand for, by the second.
var plainEscape = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// badByte returns the index of the first byte from i on that is no UTF-8.
func badByte(b []byte, i int) int {
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return i
}

// checkHexEscape checks the escape at i, which is none of two characters.
func checkHexEscape(b []byte, i int) fault {
	for k := i + 1; k < i+6; k++ {
		switch {
		case k >= len(b):
			return cutOff
		case k == i+1 && b[k] != 'u', k > i+1 && !isHex(b[k]):
			return badSyntax
		}
	}
	return noFault
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func checkLiteral(b []byte, i int, want string) (int, fault) {
	for k := range len(want) {
		if i+k >= len(b) {
			return i + k, cutOff
		}
		if b[i+k] != want[k] {
			return i + k, badSyntax
		}
	}
	return i + len(want), noFault
}

func checkNumber(b []byte, i int) (int, fault) {
	if b[i] == '-' {
		i++
	}
	var f fault
	if i < len(b) && b[i] == '0' {
		i++
	} else if i, f = checkDigits(b, i); f != noFault {
		return i, f
	}
	if i < len(b) && b[i] == '.' {
		if i, f = checkDigits(b, i+1); f != noFault {
			return i, f
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return checkDigits(b, i)
	}
	return i, noFault
}

// checkDigits steps over one or more digits.
func checkDigits(b []byte, i int) (int, fault) {
	start := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	switch {
	case i > start:
		return i, noFault
	case i >= len(b):
		return i, cutOff
	}
	return i, badSyntax
}
