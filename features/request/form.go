package request

import (
	"bytes"
	"mime"
)

// maxParts bounds the parts of a form that are looked at.
const maxParts = 64

// isForm reports whether a content type is that of a multipart form, and keeps its boundary.
func (k *work) isForm(contentType []byte) bool {
	media, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" || len(params["boundary"]) > 70 {
		return false
	}
	k.boundary = append(append(k.boundary[:0], "\r\n--"...), params["boundary"]...)
	return true
}

// form reads model and stream out of a multipart form (RFC 7578). A form that is broken, or that
// names no model, is routed as it is: the engine has the say on it. Only a model given twice is
// refused, like one in JSON.
func (p *Parser) form(r *Request, k *work, body []byte) *Error {
	var model, stream []byte
	var at span
	models := 0
	ok := eachPart(k.boundary, body, func(name string, value span) {
		switch name {
		case "model":
			model, at = body[value.start:value.end], value
			models++
		case "stream":
			stream = body[value.start:value.end]
		}
	})
	if !ok {
		r.API = Opaque
		return nil
	}
	if models > 1 {
		return refuse("model", "duplicate_field", "given twice, and readers differ in which one counts; send it once")
	}
	switch string(stream) {
	case "true", "True", "1":
		r.Stream = true
	}
	if len(model) == 0 {
		return nil
	}
	if err := checkModel(model); err != nil {
		return err
	}
	r.Model = k.modelName(model)
	if target, ok := p.rewrite(r.Model); ok {
		r.Rewrite = target
		k.at, k.renamed = at, append(k.renamed[:0], target...)
	}
	p.adapter(r)
	return nil
}

// eachPart calls do with the name and the place of the content of every part of a form. It returns
// false for a form that is broken. delimiter begins with the line break before it.
func eachPart(delimiter, body []byte, do func(name string, value span)) bool {
	const lineBreak = "\r\n"
	i := len(delimiter) - len(lineBreak) // the first delimiter may lack the line break
	if !bytes.HasPrefix(body, delimiter[len(lineBreak):]) {
		n := nextDelimiter(delimiter, body)
		if n < 0 {
			return false
		}
		i = n + len(delimiter)
	}
	for range maxParts {
		if bytes.HasPrefix(body[i:], []byte("--")) {
			return true
		}
		i += len(padding(body[i:]))
		if !bytes.HasPrefix(body[i:], []byte(lineBreak)) {
			return false
		}
		n := bytes.Index(body[i:], []byte(lineBreak+lineBreak))
		if n < 0 {
			return false
		}
		name := partName(body[i:][:n])
		i += n + len(lineBreak+lineBreak)
		if n = nextDelimiter(delimiter, body[i:]); n < 0 {
			return false
		}
		if name != "" {
			do(name, span{i, i + n})
		}
		i += n + len(delimiter)
	}
	return false
}

// nextDelimiter returns where the next delimiter stands, or -1. What only begins like one, as the
// delimiter of another form inside this one may, is none.
func nextDelimiter(delimiter, b []byte) int {
	for at := 0; ; {
		n := bytes.Index(b[at:], delimiter)
		if n < 0 {
			return -1
		}
		rest := b[at+n+len(delimiter):]
		if bytes.HasPrefix(rest, []byte("--")) || bytes.HasPrefix(rest[len(padding(rest)):], []byte("\r\n")) {
			return at + n
		}
		at += n + len(delimiter)
	}
}

// padding is the white space that may follow a delimiter.
func padding(b []byte) []byte {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return b[:i]
}

// maxDisposition bounds the header that is read of a part.
const maxDisposition = 1 << 10

// partName returns the field name of a part from its headers, or nothing.
func partName(headers []byte) string {
	for line := range bytes.Lines(headers) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(name, []byte("content-disposition")) || len(value) > maxDisposition {
			continue
		}
		if _, params, err := mime.ParseMediaType(string(bytes.TrimSpace(value))); err == nil {
			return params["name"]
		}
	}
	return ""
}
