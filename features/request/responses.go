package request

// responses writes the instructions and the input of Responses. A string as input is the same as
// one message of the user.
func (k *work) responses() *Error {
	if v := k.fields[fieldInstructions]; !absent(v) {
		k.hash.Mark(markMessage, roleSystem)
		if err := k.content(&cursor{b: v}, inMessage, false); err != nil {
			return err.below("instructions")
		}
	}
	v := k.fields[fieldInput]
	switch {
	case absent(v):
		return nil
	case v[0] == '"':
		k.hash.Mark(markMessage, roleUser)
		k.text(&k.hash, v, 0)
		return nil
	case v[0] != '[':
		return wrongKind("input", v[0], "a text or a list of items")
	}
	c := cursor{b: v}
	c.enter()
	for i := 0; c.more(); i++ {
		if c.peek() != '{' {
			return wrongKind("", c.peek(), "an item object").at(i).below("input")
		}
		start, before, media := c.i, k.hash, k.media
		err := k.item(&c, false)
		if err == nil && k.again {
			c.i, k.hash, k.media, k.again = start, before, media, false
			err = k.item(&c, true)
		}
		if err != nil {
			return err.at(i).below("input")
		}
	}
	return nil
}

// itemKind is what an item of an input is.
type itemKind uint8

const (
	itemOther itemKind = iota // written as a whole
	itemMessage
	itemCall
	itemResult
)

func (k *work) itemKind(v []byte) itemKind {
	if v[0] != '"' {
		return itemOther
	}
	switch string(k.name(v[1 : len(v)-1])) {
	case "message":
		return itemMessage
	case "function_call":
		return itemCall
	case "function_call_output":
		return itemResult
	}
	return itemOther
}

// item writes one item of an input: a message, a call, a result, or something else as a whole. What
// is long in it is written as it is read, as in a message.
func (k *work) item(c *cursor, last bool) *Error {
	var content, id, name, args, output []byte
	what, typed, known, written := itemOther, false, false, false
	role, start := uint64(0), c.i
	for c.enter(); c.more(); {
		switch string(k.name(c.name())) {
		case "type":
			k.again = k.again || written
			what, typed = k.itemKind(c.value()), true
		case "role":
			k.again = k.again || written
			role, known = k.hashText(c.value()), true
			if !typed {
				what = itemMessage
			}
		case "content":
			k.again = k.again || written
			if written = what == itemMessage && known && !last; !written {
				content = c.value()
			} else if err := k.turn(c, role, Responses, last); err != nil {
				return err
			}
		case "output":
			k.again = k.again || written
			if written = what == itemResult && !last; !written {
				output = c.value()
			} else if err := k.output(c, last); err != nil {
				return err
			}
		case "call_id":
			id = c.value()
		case "name":
			name = c.value()
		case "arguments":
			args = c.value()
		default:
			c.value()
		}
	}
	k.answer.ended = false
	switch what {
	case itemMessage:
		k.answer.ended = role == roleAssistant // see messages
		if !written {
			if content == nil {
				content = []byte("null")
			}
			return k.turn(&cursor{b: content}, role, Responses, last)
		}
	case itemCall:
		k.hash.Mark(markCalls, k.hashText(id))
		k.textOrJSON(name)
		k.hash.Mark(markArgs, 0)
		k.textOrJSON(args)
	case itemResult:
		if !written && output != nil {
			if err := k.output(&cursor{b: output}, last); err != nil {
				return err
			}
		}
		k.hash.Mark(markName, k.hashText(id))
	case itemOther:
		k.hash.Mark(markItem, 0)
		k.canon(&k.hash, c.b[start:c.i])
	}
	return nil
}

// output writes the result of a call.
func (k *work) output(c *cursor, last bool) *Error {
	k.hash.Mark(markResult, 0)
	if first := c.peek(); first != '"' && first != '[' {
		k.textOrJSON(c.value())
		return nil
	}
	if err := k.content(c, inResult, last); err != nil {
		return err.below("output")
	}
	return nil
}
