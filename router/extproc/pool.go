package extproc

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
)

// pool lends byte buffers of 4 KiB to 1 MiB in powers of four; larger ones are left to the garbage
// collector. Unlike the pool of gRPC it does not clear them: a message of 220 KB would have a whole
// megabyte cleared. Buffers are always filled before they are read.
type pool struct {
	tiers [5]sync.Pool
}

const (
	minBuffer = 4 << 10
	maxBuffer = 1 << 20
)

// tier is the smallest tier that holds n bytes, and the size of its buffers.
func tier(n int) (i, size int) {
	if n <= minBuffer {
		return 0, minBuffer
	}
	i = (bits.Len(uint(n-1)) - bits.Len(minBuffer-1) + 1) / 2
	return i, minBuffer << (2 * i)
}

// Get returns a buffer of length n with any content.
func (p *pool) Get(n int) *[]byte {
	if n > maxBuffer {
		b := make([]byte, n)
		return &b
	}
	i, size := tier(n)
	if b, ok := p.tiers[i].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, size)
	return &b
}

// Put takes a buffer back.
func (p *pool) Put(b *[]byte) {
	if n := cap(*b); n <= maxBuffer {
		if i, size := tier(n); size == n {
			p.tiers[i].Put(b)
		}
	}
}

// budget is a number of bytes that all streams share.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reserves n bytes, or none.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

var _ mem.BufferPool = (*pool)(nil)
