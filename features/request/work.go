package request

import (
	"github.com/cespare/xxhash/v2"

	"github.com/presage-router/presage/features/prefix"
)

// work is the memory behind a Request: what parsing needs, and what is kept of it until the answer
// has ended. It never points into a body once that was read.
type work struct {
	hash   prefix.Hasher
	sum    xxhash.Digest
	buf    []byte            // of bufSize: decoded text on its way to a sink
	fields [numFields][]byte // top-level values of the body being read
	media  int
	again  bool // a message gave a member twice after the first was written

	boundary []byte // of a multipart body, from the head
	model    string // the last model name, to be used again
	at       span   // where the model name stands in the body; empty: where one is to be put
	renamed  []byte // what is to stand there instead

	answer answer
}

// span is a part of a body.
type span struct{ start, end int }

// bufSize is how much decoded text is handed on at a time.
const bufSize = 4 << 10

// memory returns the request's work, making it where there is none.
func (r *Request) memory() *work {
	if r.work == nil {
		r.work = &work{buf: make([]byte, bufSize)}
	}
	return r.work
}

func (k *work) reset() {
	clear(k.fields[:])
	k.media, k.again, k.at, k.answer = 0, false, span{}, answer{}
	k.boundary, k.renamed = k.boundary[:0], k.renamed[:0]
}
