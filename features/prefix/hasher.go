package prefix

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Sizes of blocks, in bytes of decoded text. A token id counts as four bytes.
const (
	MinBlock     = 1
	DefaultBlock = 256
	MaxBlock     = 1024
)

// MaxChain is the longest chain a Hasher records, in blocks: 16 MiB of text in blocks of the
// default size. What lies beyond it is counted in Bytes, but is no part of the key, so that neither
// a small block size nor an endless answer grows memory without bound.
const MaxChain = 1 << 16

// Mark is a kind of boundary inside a prompt. The values are the caller's; a Hasher only tells them
// apart.
type Mark uint8

// Root is the hash a chain starts from: the identity of the cached state. An engine keeps apart
// what it cached for different models, adapters and cache salts. Requests name an adapter in place
// of its model while KV events name both, so that an adapter stands alone here: where there is
// one, the model is left out. Every part goes with its length, so that no two identities run into
// each other. Roots, and chains with them, are equal in every process.
func Root(model, adapter, salt string) uint64 {
	if adapter != "" {
		model = adapter
	}
	var d xxhash.Digest
	d.Reset()
	part(&d, model)
	part(&d, salt)
	return d.Sum64()
}

func part(d *xxhash.Digest, s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	_, _ = d.Write(n[:])
	_, _ = d.WriteString(s)
}

// Hasher turns a prompt into its chain of block hashes: hash i is xxhash64 of hash i-1 (the root
// for block 0), of the boundaries inside block i with their offsets, and of the block's bytes. Only
// full blocks have a hash. The chain depends on the sequence of text and marks alone, never on how
// the text was cut into writes. The unfinished block is kept, so that the text of an answer can
// continue the chain of its prompt.
//
// The zero value must be [Hasher.Reset] before use. A copy of a Hasher continues on its own, but
// shares the chain recorded so far.
type Hasher struct {
	chain []uint64
	prev  uint64
	marks uint64 // running hash of the boundaries in the unfinished block; 0: none
	total int
	size  int
	fill  int
	buf   [header + MaxBlock]byte // room for prev and marks, then the unfinished block
}

const header = 16

// Reset starts a chain of blocks of the given size at a root. A size of 0 means [DefaultBlock];
// others are taken into [MinBlock, MaxBlock]. The chain is appended to dst[:0], whose memory the
// Hasher uses from here on.
func (h *Hasher) Reset(size int, root uint64, dst []uint64) {
	if size == 0 {
		size = DefaultBlock
	}
	h.chain, h.prev, h.marks, h.total, h.fill = dst[:0], root, 0, 0, 0
	h.size = min(max(size, MinBlock), MaxBlock)
}

// Write adds decoded text. It never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	n := len(p)
	h.total += n
	for h.fill+len(p) >= h.size {
		m := copy(h.buf[header+h.fill:header+h.size], p)
		p = p[m:]
		h.close()
	}
	copy(h.buf[header+h.fill:], p)
	h.fill += len(p)
	return n, nil
}

// WriteString adds decoded text. It never fails.
func (h *Hasher) WriteString(s string) (int, error) {
	n := len(s)
	h.total += n
	for h.fill+len(s) >= h.size {
		m := copy(h.buf[header+h.fill:header+h.size], s)
		s = s[m:]
		h.close()
	}
	copy(h.buf[header+h.fill:], s)
	h.fill += len(s)
	return n, nil
}

// WriteToken adds a token id, as four bytes.
func (h *Hasher) WriteToken(id uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], id)
	_, _ = h.Write(b[:])
}

// Mark puts a boundary where the text stands: a message, a part, an image of which value is the
// hash. It takes no room in the block, but the block it falls into, and all after it, differ from
// those of the same text without it. A boundary at the very end of a full block belongs to the next.
func (h *Hasher) Mark(m Mark, value uint64) {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], h.marks)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.fill)<<8|uint64(m))
	binary.LittleEndian.PutUint64(b[16:], value)
	h.marks = xxhash.Sum64(b[:])
}

func (h *Hasher) close() {
	if len(h.chain) < MaxChain {
		binary.LittleEndian.PutUint64(h.buf[0:], h.prev)
		binary.LittleEndian.PutUint64(h.buf[8:], h.marks)
		h.prev = xxhash.Sum64(h.buf[:header+h.size])
		h.chain = append(h.chain, h.prev)
	}
	h.marks, h.fill = 0, 0
}

// Chain returns the hashes of the full blocks so far, root first. The slice is the Hasher's: it is
// valid until Reset, and grows with further writes.
func (h *Hasher) Chain() []uint64 { return h.chain }

// Bytes returns how much was written since Reset, in bytes; token ids count four.
func (h *Hasher) Bytes() int { return h.total }

// Size returns the block size in force, in bytes.
func (h *Hasher) Size() int { return h.size }
