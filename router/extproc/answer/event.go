package answer

import "bytes"

// event reads the data of one event.
func (r *Reader) event(data []byte) {
	if bytes.Equal(data, done) {
		r.ended, r.over = true, true
		return
	}
	if len(data) == 0 || data[0] != '{' {
		return
	}
	c := cursor{b: data}
	var e message
	e.read(r, &c)
	e.settle(r)
}

// message is one JSON object of an answer: an event, or the whole document. Which API speaks shows
// in its members, which may come in any order.
type message struct {
	kind  []byte // "type" of Anthropic's and of the responses API
	delta []byte // text of a delta of the responses API, with quotes
}

func (e *message) read(r *Reader, c *cursor) {
	c.enter('{')
	for c.member() {
		switch string(c.key) {
		case "choices":
			r.choices(c)
		case "usage":
			r.usage.read(c)
		case "type":
			e.kind = unquote(c.str())
		case "object":
			r.failed = r.failed || string(unquote(c.str())) == "error"
		case "error":
			r.failed = c.filled() || r.failed
		case "delta":
			if c.peek() == '"' {
				e.delta = c.str()
				continue
			}
			var p piece
			p.read(r, c)
			p.settle(r)
		case "content": // of a document of Anthropic's
			r.blocks(c, false)
		case "output": // of a document of the responses API
			r.blocks(c, true)
		case "stop_reason":
			r.finish(c)
		case "message", "response": // carried by the first or last event; its content is not new
			r.nested(c)
		default:
			c.skip()
		}
	}
}

// settle draws the conclusions that need all members.
func (e *message) settle(r *Reader) {
	if len(e.delta) > 2 {
		p := piece{text: e.delta}
		if string(e.kind) != "response.output_text.delta" {
			p = piece{other: true}
		}
		p.settle(r)
	}
	switch string(e.kind) {
	case "message_stop", "response.completed", "response.incomplete":
		r.ended, r.over = true, true
	case "error", "response.failed":
		r.failed = true
	}
}

func (r *Reader) nested(c *cursor) {
	if !c.enter('{') {
		return
	}
	for c.member() {
		switch string(c.key) {
		case "usage":
			r.usage.read(c)
		case "error":
			r.failed = c.filled() || r.failed
		default:
			c.skip()
		}
	}
}

// finish consumes a reason for the end: any but null is one.
func (r *Reader) finish(c *cursor) {
	if !c.null() && !c.bad {
		r.ended = true
	}
}
