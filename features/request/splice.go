package request

import "bytes"

// Splice returns the body to be sent as three parts, to be concatenated: unchanged bytes, the new
// model name in the body's own notation, and unchanged bytes. Without [Request.Rewrite] the first
// part is the whole body. body must be the bytes that were parsed; the parts point into it and
// into r.
func (r *Request) Splice(body []byte) (before, model, after []byte) {
	if r.Rewrite == "" || r.work == nil || len(r.work.renamed) == 0 {
		return body, nil, nil
	}
	at := r.work.at
	return body[:at.start], r.work.renamed, body[at.end:]
}

// insertModel prepares the first member for a body without a model; at is behind the opening brace.
func (k *work) insertModel(body []byte, model string) {
	k.renamed = append(k.renamed[:0], `"model":`...)
	k.renamed = appendQuoted(k.renamed, model)
	if body[skipSpace(body, k.at.end)] != '}' {
		k.renamed = append(k.renamed, ',')
	}
}

// FindModel returns where the model name stands in the JSON of an answer or of one event: the
// value's span, quotes included, of the top-level "model", or of the "model" of a top-level
// "response" or "message" object, as the streams of Responses and Messages have it. It returns
// false where there is none, or where the JSON breaks off before it.
func FindModel(body []byte) (start, end int, ok bool) {
	return findModel(body, 0, true)
}

func findModel(b []byte, i int, outer bool) (start, end int, ok bool) {
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != '{' {
		return 0, 0, false
	}
	for i = skipSpace(b, i+1); ; i = skipSpace(b, i+1) {
		at, f := checkName(b, i)
		if f != noFault {
			return 0, 0, false
		}
		name := b[i+1 : stringEnd(b, i)-1]
		if outer && (bytes.Equal(name, []byte("response")) || bytes.Equal(name, []byte("message"))) {
			if start, end, ok := findModel(b, at, false); ok {
				return start, end, true
			}
		}
		end, f := checkValue(b, at)
		if f != noFault {
			return 0, 0, false
		}
		if bytes.Equal(name, []byte("model")) {
			return at, end, b[at] == '"'
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ',' {
			return 0, 0, false
		}
	}
}
