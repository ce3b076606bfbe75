package prefix

import (
	"sync"

	"github.com/presage-router/presage/features/fleet"
)

// Options bound an [Index].
type Options struct {
	Total   int // blocks of all endpoints together; 0: DefaultTotal
	Default int // blocks of an endpoint whose capacity is not known; 0: DefaultCapacity
}

// The bounds of an [Index] where [Options] name none.
const (
	DefaultTotal    = 1 << 20
	DefaultCapacity = 1 << 13
)

// Index estimates which endpoint instance holds which blocks. All methods are safe for concurrent
// use, and do nothing for an instance that was removed, or whose slot a newer one has taken.
type Index struct {
	mu   sync.Mutex
	opts Options
}

// Stats is what an Index holds and has done.
type Stats struct {
	Endpoints int    // instances that hold blocks, or have a capacity
	Blocks    int    // blocks held, counted once per endpoint
	Distinct  int    // different blocks held
	Doubted   int    // instances that are not believed to cache prefixes
	Evicted   uint64 // blocks dropped for room
	Lost      uint64 // blocks dropped because an engine was found to have dropped younger ones
	Withdrawn uint64 // blocks dropped because their request failed
}

// NewIndex returns an empty index.
func NewIndex(o Options) *Index { return &Index{opts: o} }

// Match sets hits[i] to the number of leading blocks that snap.States[i] is believed to hold.
func (x *Index) Match(blocks []uint64, snap *fleet.Snapshot, hits []int32) {}

// Insert notes that the instance computes, or already holds, all of blocks.
func (x *Index) Insert(r fleet.Ref, blocks []uint64) {}

// Correct notes that the engine held only the first held of blocks when it started on them, where
// the index had claimed the first claimed ones. After its prefill it holds all of them.
func (x *Index) Correct(r fleet.Ref, blocks []uint64, held, claimed int) {}

// Withdraw takes back blocks beyond the first held: the request failed before its prefill.
func (x *Index) Withdraw(r fleet.Ref, blocks []uint64, held int) {}

// SetCapacity bounds the instance to so many blocks; n below 1 means that it is not known.
func (x *Index) SetCapacity(r fleet.Ref, n int) {}

// Remove forgets the instance, for good.
func (x *Index) Remove(r fleet.Ref) {}

// Stats returns what the index holds and has done.
func (x *Index) Stats() Stats { return Stats{} }
