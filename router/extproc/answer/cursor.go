package answer

import "bytes"

// cursor walks JSON in one pass, without allocation, descending only where the caller does. It
// trusts its input to be JSON and checks no more than it must to stay inside: an answer that is not
// JSON yields nothing, or less than all, but never a panic or a loop.
type cursor struct {
	b   []byte
	i   int
	key []byte // of the current member, without quotes, escapes as they stand
	bad bool   // the document broke off, or is none
}

// peek returns the next byte that is no space, or 0 at the end.
func (c *cursor) peek() byte {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return c.b[c.i]
		}
	}
	return 0
}

func (c *cursor) fail() bool {
	c.bad, c.i = true, len(c.b)
	return false
}

// enter steps into an object or array and reports whether there is one; else the value is skipped.
func (c *cursor) enter(open byte) bool {
	if c.peek() != open {
		c.skip()
		return false
	}
	c.i++
	return true
}

// member moves to the value of the next member of the object and sets c.key, or steps out.
func (c *cursor) member() bool {
	b := c.peek()
	if b == ',' {
		c.i++
		b = c.peek()
	}
	switch b {
	case '}':
		c.i++
		return false
	case '"':
	default:
		return c.fail()
	}
	c.key = unquote(c.str())
	if c.peek() != ':' {
		return c.fail()
	}
	c.i++
	return true
}

// element moves to the next element of the array, or steps out.
func (c *cursor) element() bool {
	b := c.peek()
	if b == ',' {
		c.i++
		b = c.peek()
	}
	switch b {
	case ']':
		c.i++
		return false
	case 0, '}', ',', ':':
		return c.fail()
	}
	return true
}

// str reads a string and returns it with its quotes, or nil if the value is none, which is skipped.
func (c *cursor) str() []byte {
	if c.peek() != '"' {
		c.skip()
		return nil
	}
	start := c.i
	for i := c.i + 1; ; {
		n := bytes.IndexByte(c.b[i:], '"')
		if n < 0 {
			c.fail()
			return nil
		}
		i += n + 1
		esc := 0
		for k := i - 2; k > start && c.b[k] == '\\'; k-- {
			esc++
		}
		if esc%2 == 0 {
			c.i = i
			return c.b[start:i]
		}
	}
}

// skip moves over one value.
func (c *cursor) skip() {
	switch c.peek() {
	case '"':
		c.str()
	case '{', '[':
		c.skipNested()
	case 0, '}', ']', ',', ':':
		c.fail()
	default:
		c.scalar()
	}
}

// skipNested moves over an object or array by counting brackets outside strings.
func (c *cursor) skipNested() {
	depth := 0
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case '"':
			c.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.i++
		if depth == 0 {
			return
		}
	}
	c.fail()
}

// scalar reads a number or a literal.
func (c *cursor) scalar() []byte {
	start := c.i
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return c.b[start:c.i]
		}
		c.i++
	}
	return c.b[start:c.i]
}

// null consumes the value and reports whether it is null.
func (c *cursor) null() bool {
	if c.peek() != 'n' {
		c.skip()
		return false
	}
	return string(c.scalar()) == "null"
}

// filled consumes the value and reports whether it says anything: it is neither null, false, 0, nor
// an empty string, list or object.
func (c *cursor) filled() bool {
	switch c.peek() {
	case '"':
		return len(c.str()) > 2
	case '[', '{':
		start := c.i
		c.i++
		inside := c.peek()
		c.i = start
		c.skipNested()
		return inside != ']' && inside != '}' && !c.bad
	case 'n', 'f', '0':
		c.skip()
		return false
	}
	c.skip()
	return !c.bad
}

// unquote strips the quotes of a string as read by str.
func unquote(s []byte) []byte {
	if len(s) < 2 {
		return nil
	}
	return s[1 : len(s)-1]
}
