package answer

import (
	"bytes"
	"encoding/json"

	"github.com/presage-router/presage/features/request"
)

// maxHeld bounds how much of a line, or of a document, is held back until its model name shows.
const maxHeld = 64 << 10

// Renamer puts the model name that a client used back where an engine reports the one it was asked
// for: in the model member of a document, or of every event of a stream. All other bytes stay as
// they are, generated text included.
type Renamer struct {
	form Form
	from []byte // the engine's name
	to   []byte // the client's name as a JSON string

	held    []byte // not given out yet
	passing bool   // what comes until the line's (or the document's) end is given out as it comes
}

// Reset makes the renamer ready for another answer. From and to are plain names.
func (r *Renamer) Reset(form Form, from, to string) {
	quoted, err := json.Marshal(to)
	if err != nil { // no string fails
		form = Opaque
	}
	*r = Renamer{form: form, from: append(r.from[:0], from...), to: quoted, held: recycle(r.held)}
}

// Append appends to dst what may be given out once chunk has come, at the end of the answer all.
func (r *Renamer) Append(dst, chunk []byte, end bool) []byte {
	switch r.form {
	case Events:
		dst = r.events(dst, chunk)
	case Document:
		dst = r.document(dst, chunk)
	case Opaque:
		return append(dst, chunk...)
	}
	if end && len(r.held) > 0 {
		if r.form == Events {
			dst = r.line(dst, r.held)
		} else {
			dst = append(dst, r.held...)
		}
		r.held = r.held[:0]
	}
	return dst
}

// events gives out whole lines.
func (r *Renamer) events(dst, chunk []byte) []byte {
	for len(chunk) > 0 {
		end := bytes.IndexAny(chunk, "\r\n") + 1
		switch {
		case r.passing && end == 0:
			return append(dst, chunk...)
		case r.passing:
			dst, r.passing = append(dst, chunk[:end]...), false
		case end == 0:
			r.held = append(r.held, chunk...)
			if len(r.held) > maxHeld {
				dst, r.held, r.passing = append(dst, r.held...), r.held[:0], true
			}
			return dst
		case len(r.held) == 0:
			dst = r.line(dst, chunk[:end])
		default:
			r.held = append(r.held, chunk[:end]...)
			dst, r.held = r.line(dst, r.held), r.held[:0]
		}
		chunk = chunk[end:]
	}
	return dst
}

// line gives out one line, its end included.
func (r *Renamer) line(dst, line []byte) []byte {
	value, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		return append(dst, line...)
	}
	dst = append(dst, dataField...)
	if out, ok := r.replace(dst, value); ok {
		return out
	}
	return append(dst, value...)
}

var dataField = []byte("data:")

// document gives out the document from where its model name has been seen.
func (r *Renamer) document(dst, chunk []byte) []byte {
	if r.passing {
		return append(dst, chunk...)
	}
	r.held = append(r.held, chunk...)
	if _, _, found := request.FindModel(r.held); !found && len(r.held) <= maxHeld {
		return dst
	}
	r.passing = true
	out, ok := r.replace(dst, r.held)
	if !ok {
		out = append(dst, r.held...)
	}
	r.held = r.held[:0]
	return out
}

// replace appends b with the model's name replaced, if it is the engine's.
func (r *Renamer) replace(dst, b []byte) ([]byte, bool) {
	start, end, ok := request.FindModel(b)
	if !ok || !bytes.Equal(unquote(b[start:end]), r.from) {
		return dst, false
	}
	dst = append(dst, b[:start]...)
	dst = append(dst, r.to...)
	return append(dst, b[end:]...), true
}
