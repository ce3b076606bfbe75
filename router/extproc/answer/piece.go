package answer

// piece is generated content: one delta of one choice, or the whole message of a document.
type piece struct {
	text  []byte // JSON string with its quotes
	think bool   // reasoning, which comes before the text
	other bool   // a tool call and the like, which come after it
	index int    // of the choice
}

// choices reads the choices of the OpenAI APIs.
func (r *Reader) choices(c *cursor) {
	if !c.enter('[') {
		return
	}
	for c.element() {
		if !c.enter('{') {
			continue
		}
		var p piece
		for c.member() {
			switch string(c.key) {
			case "index":
				if c.peek() != '0' {
					p.index = 1
				}
				c.skip()
			case "delta", "message":
				p.read(r, c)
			case "text":
				p.string(c)
			case "finish_reason":
				r.finish(c)
			default:
				c.skip()
			}
		}
		p.settle(r)
	}
}

// read reads a delta or a message of any API.
func (p *piece) read(r *Reader, c *cursor) {
	if !c.enter('{') {
		return
	}
	for c.member() {
		switch string(c.key) {
		case "content", "text":
			p.string(c)
		case "reasoning", "reasoning_content", "thinking":
			p.think = c.filled() || p.think
		case "tool_calls", "function_call", "partial_json", "refusal", "audio":
			p.other = c.filled() || p.other
		case "stop_reason":
			r.finish(c)
		default:
			c.skip()
		}
	}
}

// string reads the text; a list of parts is content too, but cannot continue a prompt.
func (p *piece) string(c *cursor) {
	if c.peek() == '"' {
		p.text = c.str()
		return
	}
	p.other = c.filled() || p.other
}

// settle counts the piece and passes its text on. A piece that only names a role says nothing.
func (p *piece) settle(r *Reader) {
	spoken := len(p.text) > 2
	if spoken || p.think || p.other {
		r.tokens++
	}
	if r.text == nil || p.index != 0 {
		return
	}
	if p.think {
		r.text.EndAnswer()
	}
	if spoken {
		r.text.AddQuoted(p.text)
	}
	if p.other {
		r.text.EndAnswer()
	}
}

// blocks reads a list of content blocks; with outer, those of the type message hold such lists.
func (r *Reader) blocks(c *cursor, outer bool) {
	if !c.enter('[') {
		return
	}
	for c.element() {
		if !c.enter('{') {
			continue
		}
		var kind, text []byte
		for c.member() {
			switch string(c.key) {
			case "type":
				kind = unquote(c.str())
			case "text":
				text = c.str()
			case "content":
				if outer {
					r.blocks(c, false)
				} else {
					c.skip()
				}
			default:
				c.skip()
			}
		}
		switch string(kind) {
		case "message":
		case "text", "output_text":
			p := piece{text: text}
			p.settle(r)
		default:
			p := piece{other: true}
			p.settle(r)
		}
	}
}
