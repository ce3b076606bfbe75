package request

// conversation writes the system prompt and the messages of Chat and Messages.
func (k *work) conversation(api API) *Error {
	if v := k.fields[fieldSystem]; !absent(v) {
		k.hash.Mark(markMessage, roleSystem)
		if err := k.content(&cursor{b: v}, inSystem, false); err != nil {
			return err.below("system")
		}
	}
	return k.messages(api)
}

// messages writes a list of messages.
func (k *work) messages(api API) *Error {
	v := k.fields[fieldMessages]
	if absent(v) {
		return nil
	}
	if v[0] != '[' {
		return wrongKind("messages", v[0], "a list of messages")
	}
	role := uint64(0)
	c := cursor{b: v}
	c.enter()
	for i := 0; c.more(); i++ {
		if c.peek() != '{' {
			return wrongKind("", c.peek(), "a message object").at(i).below("messages")
		}
		var err *Error
		start, before, media := c.i, k.hash, k.media
		if role, err = k.message(&c, api, false); err == nil && k.again {
			c.i, k.hash, k.media, k.again = start, before, media, false
			role, err = k.message(&c, api, true)
		}
		if err != nil {
			return err.at(i).below("messages")
		}
	}
	// An answer to a conversation that ends with an assistant's message either continues that
	// message or follows it; only where the request says which is the next turn foreseeable.
	if role == roleAssistant {
		k.answer.continues = string(k.fields[fieldContinue]) == "true"
		k.answer.ended = !k.answer.continues
	}
	return nil
}

// message writes a message and returns the hash of its role. The role goes first and the content
// next, wherever they stand: content that stands behind the role is written as it is read, other
// content once the role is known. Of two members by one name the last counts, as for engines; if
// that turns up too late, again is set, and the message is to be written a second time, last: first
// reading all of it.
func (k *work) message(c *cursor, api API, last bool) (role uint64, err *Error) {
	var name, callID, reasoning, content, calls, call []byte
	known, written := false, false
	for c.enter(); c.more(); {
		switch string(k.name(c.name())) {
		case "role":
			k.again = k.again || written
			role, known = k.hashText(c.value()), true
		case "content":
			k.again = k.again || written
			if !known || last {
				content = c.value()
				continue
			}
			written = true
			if err := k.turn(c, role, api, last); err != nil {
				return role, err
			}
		case "name":
			name = c.value()
		case "tool_call_id":
			callID = c.value()
		case "reasoning", "reasoning_content":
			reasoning = c.value()
		case "tool_calls":
			calls = c.value()
		case "function_call":
			call = c.value()
		default:
			c.value()
		}
	}
	if !written {
		if content == nil {
			content = []byte("null")
		}
		if err := k.turn(&cursor{b: content}, role, api, last); err != nil {
			return role, err
		}
	}
	for _, v := range [...][]byte{name, callID} {
		if !absent(v) {
			k.hash.Mark(markName, k.hashText(v))
		}
	}
	if !absent(reasoning) {
		k.hash.Mark(markReason, 0)
		k.textOrJSON(reasoning)
	}
	for _, v := range [...][]byte{calls, call} {
		if !absent(v) && !empty(v) {
			k.hash.Mark(markCalls, 0)
			k.canon(&k.hash, v)
		}
	}
	return role, nil
}

// turn writes the role and the content of a message.
func (k *work) turn(c *cursor, role uint64, api API, last bool) *Error {
	k.hash.Mark(markMessage, role)
	at := inMessage
	if api == Messages && role == roleSystem {
		at = inSystem
	}
	if err := k.content(c, at, last); err != nil {
		return err.below("content")
	}
	return nil
}

// textOrJSON writes a string's text, or another value's one form.
func (k *work) textOrJSON(v []byte) {
	switch {
	case absent(v):
	case v[0] == '"':
		k.text(&k.hash, v, 0)
	default:
		k.canon(&k.hash, v)
	}
}
