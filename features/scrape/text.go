package scrape

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// errLine is a line of a wanted metric that breaks the text format.
var errLine = errors.New("no sample of the text format")

// nameEnd is the length of the metric name at the start of b: what precedes labels or value.
func nameEnd(b []byte) int {
	n := bytes.IndexByte(b, '{')
	if n > 0 && b[n-1] != ' ' && b[n-1] != '\t' {
		return n
	}
	for i, c := range b {
		if !isNameByte(c) {
			return i
		}
	}
	return len(b)
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':'
}

// tokenEnd is the length of what precedes the first blank.
func tokenEnd(b []byte) int {
	for i, c := range b {
		if isBlank(c) {
			return i
		}
	}
	return len(b)
}

// labelEnd is the length of the unquoted label name at the start of b; 0: there is none.
func labelEnd(b []byte) int {
	for i, c := range b {
		switch c {
		case ' ', '\t', '=', ',', '{', '}', '"':
			return i
		}
	}
	return 0
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	return b
}

// labels reads the label set of one sample. It holds what is still to be read; the slices it hands
// out point into the line, or into scratch where a value held escapes.
type labels struct {
	rest    []byte
	scratch []byte
}

// open steps into a label set, if b starts with one.
func (l *labels) open(b []byte) (has bool) {
	b = skipBlanks(b)
	l.rest = b
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	l.rest = b[1:]
	return true
}

// next reads one label. At the end of the set it returns no name and no error, and rest is what
// follows the brace. A quoted string that is no label is a metric name and comes with no value; a
// label's value is never nil.
func (l *labels) next() (name, value []byte, err error) {
	b := skipBlanks(l.rest)
	if len(b) == 0 {
		return nil, nil, errLine
	}
	if b[0] == '}' {
		l.rest = b[1:]
		return nil, nil, nil
	}
	quoted := b[0] == '"'
	if quoted {
		if name, b, err = l.quoted(b); err != nil {
			return nil, nil, err
		}
	} else {
		n := labelEnd(b)
		if n == 0 {
			return nil, nil, errLine
		}
		name, b = b[:n], b[n:]
	}
	b = skipBlanks(b)
	if quoted && len(b) > 0 && (b[0] == ',' || b[0] == '}') {
		return name, nil, l.after(b)
	}
	if len(b) == 0 || b[0] != '=' {
		return nil, nil, errLine
	}
	if b = skipBlanks(b[1:]); len(b) == 0 || b[0] != '"' {
		return nil, nil, errLine
	}
	if value, b, err = l.quoted(b); err != nil {
		return nil, nil, err
	}
	return name, value, l.after(b)
}

// after steps over the comma behind a label; a closing brace is left for next.
func (l *labels) after(b []byte) error {
	b = skipBlanks(b)
	switch {
	case len(b) == 0:
		return errLine
	case b[0] == ',':
		b = b[1:]
	case b[0] != '}':
		return errLine
	}
	l.rest = b
	return nil
}

// quoted reads a string in double quotes, with the escapes \\, \" and \n.
func (l *labels) quoted(b []byte) (text, rest []byte, err error) {
	b = b[1:]
	end := bytes.IndexByte(b, '"')
	if end < 0 {
		return nil, nil, errLine
	}
	if bytes.IndexByte(b[:end], '\\') < 0 {
		return b[:end], b[end+1:], nil
	}
	from := len(l.scratch)
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			return l.scratch[from:len(l.scratch):len(l.scratch)], b[i+1:], nil
		case '\\':
			i++
			if i == len(b) {
				return nil, nil, errLine
			}
			switch b[i] {
			case 'n':
				l.scratch = append(l.scratch, '\n')
			case '\\', '"':
				l.scratch = append(l.scratch, b[i])
			default:
				return nil, nil, errLine
			}
		default:
			l.scratch = append(l.scratch, c)
		}
	}
	return nil, nil, errLine
}

// sampleValue reads what follows name and labels: the value, then perhaps a timestamp and an
// exemplar, which are checked for form only.
func sampleValue(b []byte) (float64, error) {
	b = skipBlanks(b)
	n := tokenEnd(b)
	v, err := number(b[:n])
	if err != nil {
		return 0, err
	}
	b = skipBlanks(b[n:])
	if len(b) == 0 || b[0] == '#' {
		return v, nil
	}
	n = tokenEnd(b)
	if _, err := number(b[:n]); err != nil {
		return 0, err
	}
	if b = skipBlanks(b[n:]); len(b) > 0 && b[0] != '#' {
		return 0, errLine
	}
	return v, nil
}

// number reads a decimal float as the text format writes it: no hexadecimal, no underscores. NaN
// and infinities are numbers here; whether a metric may have them is asked later.
func number(b []byte) (float64, error) {
	if len(b) == 0 || len(b) > 64 {
		return 0, errLine
	}
	s := string(b) // stays on the stack: ParseFloat does not keep it
	if strings.IndexByte(s, '_') >= 0 || strings.IndexByte(s, 'x') >= 0 || strings.IndexByte(s, 'X') >= 0 {
		return 0, errLine
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errLine
	}
	return v, nil
}
