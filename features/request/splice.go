package request

// Splice returns the body to be sent as three parts, to be concatenated: unchanged bytes, the new
// model name in the body's own notation, and unchanged bytes. Without [Request.Rewrite] the first
// part is the whole body. body must be the bytes that were parsed; the parts point into it and
// into r.
func (r *Request) Splice(body []byte) (before, model, after []byte) { return body, nil, nil }

// FindModel returns where the model name stands in the JSON of an answer or of one event: the
// value's span, quotes included, of the top-level "model", or of the "model" of a top-level
// "response" or "message" object, as the streams of Responses and Messages have it. It returns
// false where there is none, or where the JSON breaks off before it.
func FindModel(body []byte) (start, end int, ok bool) { return 0, 0, false }
