package answer

import "bytes"

// doc is what is kept of a document: all of it up to maxDoc, else its end.
type doc struct {
	buf []byte
	cut bool // buf is only the end
}

func (d *doc) reset() { *d = doc{buf: recycle(d.buf)} }

// keep appends a chunk.
func (d *doc) keep(chunk []byte) {
	if !d.cut && len(d.buf)+len(chunk) <= maxDoc {
		d.buf = append(d.buf, chunk...)
		return
	}
	d.cut = true
	if len(chunk) >= maxTail {
		d.buf = append(d.buf[:0], chunk[len(chunk)-maxTail:]...)
		return
	}
	if over := len(d.buf) + len(chunk) - maxTail; over > 0 {
		d.buf = append(d.buf[:0], d.buf[over:]...)
	}
	d.buf = append(d.buf, chunk...)
}

// parseDoc reads the document once its bytes have ended.
func (r *Reader) parseDoc() {
	body := bytes.TrimSpace(r.buf)
	if r.cut {
		r.parseTail(body)
		return
	}
	c := cursor{b: body}
	var m message
	m.read(r, &c)
	m.settle(r)
	r.ended = !c.bad && len(body) > 0 && body[0] == '{'
}

var usageKey = []byte(`"usage"`)

// parseTail finds usage in the end of a long document. Within a string the quotes of the key would
// be escaped, so it is a member wherever a colon follows, and the last one is that of the outermost
// object, where engines report usage.
func (r *Reader) parseTail(tail []byte) {
	r.ended = bytes.HasSuffix(tail, []byte("}"))
	for rest := tail; ; {
		at := bytes.LastIndex(rest, usageKey)
		if at < 0 {
			return
		}
		c := cursor{b: tail, i: at + len(usageKey)}
		if c.peek() == ':' {
			c.i++
			r.usage.read(&c)
			return
		}
		rest = rest[:at]
	}
}
