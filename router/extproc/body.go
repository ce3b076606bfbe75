package extproc

import (
	"google.golang.org/grpc/mem"

	"github.com/presage-router/presage/router/extproc/wire"
)

const (
	// maxPiece bounds the body bytes of one message sent: some proxies take no more than 64 KiB.
	maxPiece = 62_000
	// inPlace is the least size of a body's only message that is kept where it was received; a
	// smaller one would hold on to a buffer many times its size.
	inPlace = 2 << 10
	// trusted is how much of a declared content length is reserved before it has arrived.
	trusted = 1 << 20
	// byReference is the least size of a piece that is sent from where it lies instead of copied.
	byReference = 1 << 10
)

// body is a request body while it is read. The budget is charged for what it holds.
type body struct {
	data []byte     // all of it so far
	kept mem.Buffer // holds data at offset at, while there was only one message; or nil
	at   int
	own  *[]byte // holds data otherwise, from the pool
	held int64   // charged
}

// add appends the body of a message. It returns false, with what to tell the client, when a limit
// is reached.
func (b *body) add(f *frame, declared int64, m *memory) (refusal, bool) {
	need := int64(len(b.data) + len(f.Body))
	if need > m.maxBody {
		return tooLarge(m.maxBody), false
	}
	switch {
	case len(f.Body) == 0:
		return refusal{}, true
	case len(b.data) == 0 && len(f.Body) >= inPlace && need >= declared:
		if !m.budget.take(need) {
			return outOfMemory(), false
		}
		f.buf.Ref()
		b.kept, b.at, b.data, b.held = f.buf, f.BodyAt, f.Body, need
		return refusal{}, true
	}
	if !b.grow(need, declared, m) {
		return outOfMemory(), false
	}
	b.data = append(b.data, f.Body...)
	return refusal{}, true
}

// grow makes room for need bytes in a buffer of our own. A declared length is reserved at once where
// it is small; beyond that, memory follows what really arrives.
func (b *body) grow(need, declared int64, m *memory) bool {
	if b.own != nil && need <= int64(cap(*b.own)) {
		return true
	}
	size := need
	if b.own != nil || b.kept != nil {
		size = 2 * need
	}
	if declared > 0 {
		size = max(min(size, declared), min(declared, trusted), need)
	}
	size = min(size, max(need, m.maxBody))
	if size <= maxBuffer {
		_, n := tier(int(size))
		size = int64(n)
	}
	if !m.budget.take(size) {
		return false
	}
	buf := m.pool.Get(int(size))
	data := append((*buf)[:0], b.data...)
	b.free(m)
	b.own, b.data, b.held = buf, data, size
	return true
}

// free gives all memory back.
func (b *body) free(m *memory) {
	if b.kept != nil {
		b.kept.Free()
	}
	if b.own != nil {
		m.pool.Put(b.own)
	}
	m.budget.give(b.held)
	*b = body{}
}

// release gives the body away: its bytes and the buffer they lie in. The budget is given back, since
// from here on the transport's flow control bounds what waits.
func (b *body) release(m *memory) part {
	out := part{data: b.data, buf: b.kept, at: b.at}
	if b.own != nil {
		*b.own = b.data
		out.buf, out.at = mem.NewBuffer(b.own, m.pool), 0
	}
	m.budget.give(b.held)
	*b = body{}
	return out
}

// memory is what bodies are made of, shared by all streams.
type memory struct {
	pool    *pool
	budget  budget
	maxBody int64
}

// part is a span of bytes and the buffer it lies in, at offset at. A part without a buffer belongs to
// nobody else.
type part struct {
	data []byte
	buf  mem.Buffer
	at   int
}

// slice returns bytes of the part as a buffer of their own.
func (p *part) slice(from, to int) mem.Buffer {
	if p.buf == nil {
		return mem.SliceBuffer(p.data[from:to])
	}
	return p.buf.Slice(p.at+from, p.at+to)
}

// pieces appends to out the messages that send the bytes of parts back to the gateway; the last one
// ends the body with end. No bytes and no end make no message. The parts stay the caller's.
func pieces(out []mem.BufferSlice, k wire.Kind, end bool, parts []part) []mem.BufferSlice {
	left := 0
	for i := range parts {
		left += len(parts[i].data)
	}
	if left == 0 && end {
		return append(out, one(wire.AppendPiece(nil, k, 0, true)))
	}
	i, from := 0, 0 // the next byte, in parts[i]
	for left > 0 {
		n := min(left, maxPiece)
		left -= n
		last := end && left == 0
		if n < byReference {
			b := wire.AppendPiece(make([]byte, 0, wire.MaxPrefix+n), k, n, last)
			for ; i < len(parts); i, from = i+1, 0 { // nothing is left after a piece so small
				b = append(b, parts[i].data[from:]...)
			}
			return append(out, one(b))
		}
		message := make(mem.BufferSlice, 1, 2)
		message[0] = mem.SliceBuffer(wire.AppendPiece(make([]byte, 0, wire.MaxPrefix), k, n, last))
		for n > 0 {
			take := min(n, len(parts[i].data)-from)
			if take > 0 {
				message = append(message, parts[i].slice(from, from+take))
			}
			n -= take
			if from += take; from == len(parts[i].data) {
				i, from = i+1, 0
			}
		}
		out = append(out, message)
	}
	return out
}
