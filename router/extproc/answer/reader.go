package answer

import (
	"github.com/presage-router/presage/router"
)

// Form says how an answer is to be read.
type Form uint8

// The forms of answers.
const (
	Opaque   Form = iota // not read: compressed, an error page, not ours to understand
	Events               // server-sent events
	Document             // one JSON document
)

// Text receives the text of the first choice while it is generated. [request.Request] is one.
type Text interface {
	AddQuoted(raw []byte) // a JSON string with its quotes, in order
	EndAnswer()           // what follows will not come back as text of this answer
}

// Limits of what is kept of one answer.
const (
	maxLine = 4 << 20  // one line of an event, or all data lines of one event
	maxDoc  = 1 << 20  // a document that is read as a whole
	maxTail = 16 << 10 // the end of a longer document, where engines put usage
)

// Reader reads one answer. The zero value reads nothing; [Reader.Reset] starts an answer.
type Reader struct {
	form Form
	text Text
	facts
	stream
	doc
}

// facts is what an answer said about itself.
type facts struct {
	usage  usage
	tokens int  // content events of the current call
	ended  bool // the answer's own end was seen
	over   bool // the last event of the answer was seen
	failed bool // the answer reports an error
	blind  bool // parsing stopped at a limit
}

// Reset makes the reader ready for another answer, keeping its memory unless it has grown large.
// text may be nil.
func (r *Reader) Reset(form Form, text Text) {
	r.form, r.text = form, text
	r.facts = facts{usage: usage{Usage: unknown}}
	r.stream.reset()
	r.doc.reset()
}

// Write reads the next bytes of the answer and returns how many pieces of content became complete
// with them: tokens, until usage says better. It keeps nothing of chunk. A document's content only
// counts at its end and never as tokens, since nothing tells when they were generated.
func (r *Reader) Write(chunk []byte) (tokens int) {
	switch r.form {
	case Events:
		r.tokens = 0
		r.read(chunk)
		return r.tokens
	case Document:
		r.keep(chunk)
	case Opaque:
	}
	return 0
}

// Close tells that the answer's bytes have ended, and returns what [Reader.Write] would have: the
// last event may lack its blank line.
func (r *Reader) Close() (tokens int) {
	switch r.form {
	case Events:
		r.tokens = 0
		r.flush()
		return r.tokens
	case Document:
		r.parseDoc()
	case Opaque:
	}
	return 0
}

// Usage returns what the answer reported, [features.Unknown] where it reported nothing that can be
// believed.
func (r *Reader) Usage() router.Usage {
	if r.blind {
		return unknown
	}
	return r.usage.result()
}

// Odd reports whether the answer's usage held an impossible figure.
func (r *Reader) Odd() bool { return r.usage.odd }

// Ended reports whether the answer is complete by its own account, as far as it could be read.
func (r *Reader) Ended() bool { return r.ended || r.blind || r.form == Opaque }

// Over reports whether the last event of the answer was seen: clients may leave now, nothing of it is
// missing.
func (r *Reader) Over() bool { return r.over }

// Failed reports whether the answer says that the engine failed.
func (r *Reader) Failed() bool { return r.failed }
