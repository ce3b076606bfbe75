package request

import "bytes"

// place is where content stands.
type place uint8

const (
	inMessage place = iota
	inSystem        // the system prompt of Messages
	inResult        // what a tool returned
)

// content writes the content of a message: a string, or parts. One part of text is the same as a
// string.
func (k *work) content(c *cursor, at place, last bool) *Error {
	switch c.peek() {
	case 'n':
		c.value()
		return nil
	case '"':
		if isBilling(c, at) {
			c.value()
		} else {
			c.i = k.text(&k.hash, c.b, c.i)
		}
		return nil
	case '[':
	default:
		return wrongKind("", c.peek(), "a string or a list of parts")
	}
	p := parts{place: at, last: last}
	c.enter()
	for i := 0; c.more(); i++ {
		switch c.peek() {
		case '"':
			k.textPart(c, &p)
		case '{':
			if err := k.part(c, &p); err != nil {
				return err.at(i)
			}
		default:
			return wrongKind("", c.peek(), "a part object").at(i)
		}
	}
	return nil
}

// parts is how far a list of parts was written.
type parts struct {
	place place
	last  bool // see message
	some  bool // a part was written
}

// next puts the boundary before a part that is not the first.
func (k *work) next(p *parts) {
	if p.some {
		k.hash.Mark(markPart, 0)
	}
	p.some = true
}

// isBilling reports whether the string the cursor is at is the billing header of a system prompt.
func isBilling(c *cursor, at place) bool {
	return at == inSystem && bytes.HasPrefix(c.b[c.i:], []byte(`"x-anthropic-billing-header`))
}

// textPart writes a part of text, except for the billing header.
func (k *work) textPart(c *cursor, p *parts) {
	switch {
	case c.peek() != '"':
		v := c.value()
		k.next(p)
		k.textOrJSON(v)
	case isBilling(c, p.place):
		c.value()
	default:
		k.next(p)
		c.i = k.text(&k.hash, c.b, c.i)
	}
}

// partKind is what a part of a message is to the prompt.
type partKind uint8

const (
	partMedia partKind = iota // images, audio, files, and whatever is not known
	partText
	partReason
	partRefusal
	partHidden // what engines leave out
	partCall
	partResult
)

func (k *work) partKind(v []byte) partKind {
	if v[0] != '"' {
		return partMedia
	}
	switch string(k.name(v[1 : len(v)-1])) {
	case "text", "input_text", "output_text":
		return partText
	case "thinking", "reasoning_text", "summary_text":
		return partReason
	case "redacted_thinking":
		return partHidden
	case "refusal":
		return partRefusal
	case "tool_use":
		return partCall
	case "tool_result":
		return partResult
	}
	return partMedia
}

// part writes one part. Its text, or the content of a result, is written as it is read where the
// type stands before it.
func (k *work) part(c *cursor, p *parts) *Error {
	var text, thinking, refusal, content, id, name, input []byte
	what, typed, written := partMedia, false, false
	start := c.i
	for c.enter(); c.more(); {
		member := k.name(c.name())
		switch string(member) {
		case "type":
			k.again = k.again || written
			what, typed = k.partKind(c.value()), true
		case "text":
			k.again = k.again || written
			if written = what == partText && !p.last; written {
				k.textPart(c, p)
			} else {
				text = c.value()
			}
		case "content":
			k.again = k.again || written
			if written = what == partResult && !p.last; written {
				if err := k.result(c, p); err != nil {
					return err
				}
			} else {
				content = c.value()
			}
		case "thinking":
			thinking = c.value()
		case "refusal":
			refusal = c.value()
		case "id", "tool_use_id":
			id = c.value()
		case "name":
			name = c.value()
		case "input":
			input = c.value()
		default:
			c.value()
		}
	}
	if !typed && text != nil {
		what = partText
	}
	switch what {
	case partText:
		if !written && text != nil {
			k.textPart(&cursor{b: text}, p)
		}
	case partReason:
		k.next(p)
		k.hash.Mark(markReason, 0)
		if thinking == nil {
			thinking = text
		}
		k.textOrJSON(thinking)
	case partRefusal:
		k.next(p)
		k.hash.Mark(markRefusal, 0)
		k.textOrJSON(refusal)
	case partCall:
		k.next(p)
		k.hash.Mark(markCalls, k.hashText(id))
		k.textOrJSON(name)
		k.hash.Mark(markArgs, 0)
		k.textOrJSON(input)
	case partResult:
		if !written {
			if content == nil {
				content = []byte("null")
			}
			if err := k.result(&cursor{b: content}, p); err != nil {
				return err
			}
		}
		k.hash.Mark(markName, k.hashText(id))
	case partHidden:
	case partMedia:
		k.next(p)
		k.hash.Mark(markMedia, k.digestObject(c.b[start:c.i], "cache_control"))
		k.media++
	}
	return nil
}

// result writes the content of a tool's result. A result within a result, which no API has, is
// taken as a whole; so the work stays linear in the body.
func (k *work) result(c *cursor, p *parts) *Error {
	k.next(p)
	k.hash.Mark(markResult, 0)
	if p.place == inResult {
		k.textOrJSON(c.value())
		return nil
	}
	if err := k.content(c, inResult, p.last); err != nil {
		return err.below("content")
	}
	return nil
}
