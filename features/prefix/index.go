package prefix

import (
	"math/rand/v2"
	"sync"

	"github.com/presage-router/presage/features/fleet"
)

// Options bound an [Index].
type Options struct {
	Total   int // blocks of all endpoints together; 0: DefaultTotal
	Default int // blocks of an endpoint whose capacity is not known; 0: DefaultCapacity
}

// The bounds of an [Index] where [Options] name none. What is remembered costs about 90 bytes
// of memory where one endpoint holds it, and 45 for every further one: of long prompts, a quarter of their
// blocks.
const (
	DefaultTotal    = 1 << 20
	DefaultCapacity = 1 << 13
)

// Index estimates which endpoint instance holds which blocks. All methods are safe for concurrent
// use, and do nothing for an instance that was removed, or whose slot a newer one has taken.
//
// Chains are given from the root on, so every block is touched together with all blocks before it,
// and is less recent than these. Evicting the least recent block therefore takes the last block of
// a chain first, as engines do, and what an instance holds of a chain is always its beginning.
type Index struct {
	mu     sync.Mutex
	opts   Options
	grain  grain
	slots  []slot
	table  table
	clock  uint32 // one tick per chain touched
	total  int    // blocks of all shelves
	oldest *shelf // holds the least recent entry of all while that is not younger than until
	until  uint32
	tip    tip

	distinct int // different blocks

	// scratch
	chain []uint64 // the remembered blocks of the one being put
	alive []uint64
	state []int32
	found []uint32

	evicted, lost, restarted, withdrawn uint64
}

// slot is what is known of a slot of the fleet: its newest instance, and what that holds.
type slot struct {
	instance uint64
	taken    bool
	shelf    *shelf // nil: free, or the instance was removed
}

// maxSlots is what a fleet can have; chains of any other slot are ignored.
const maxSlots = 1 << 16

// NewIndex returns an empty index.
func NewIndex(o Options) *Index {
	if o.Total < 1 {
		o.Total = DefaultTotal
	}
	if o.Default < 1 {
		o.Default = DefaultCapacity
	}
	return &Index{opts: o, grain: standard(), table: newTable(rand.Uint64())}
}

// Insert notes that the instance computes, or already holds, all of blocks. Where they continue what
// [Index.Correct] was just told, it is the same request that puts the rest.
func (x *Index) Insert(r fleet.Ref, blocks []uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.shelf(r); s != nil && len(blocks) > 0 {
		x.put(s, x.thin(blocks), insert)
	}
}

// thin returns the remembered blocks of a chain, valid until the next call.
func (x *Index) thin(blocks []uint64) []uint64 {
	x.chain = x.grain.thin(x.chain[:0], blocks)
	return x.chain
}

// shelf returns what an instance holds, making an empty shelf for a new one; nil when it has left.
func (x *Index) shelf(r fleet.Ref) *shelf {
	at := x.slot(r)
	if at == nil {
		return nil
	}
	if !at.taken || at.instance != r.Instance {
		x.clear(at)
		x.table.widen(r.Slot + 1)
		*at = slot{instance: r.Instance, taken: true, shelf: newShelf(r.Slot, min(x.opts.Default, x.opts.Total))}
	}
	return at.shelf
}

// slot returns the slot of an instance, or nil when a newer one has it.
func (x *Index) slot(r fleet.Ref) *slot {
	if r.Slot < 0 || r.Slot >= maxSlots {
		return nil
	}
	for r.Slot >= len(x.slots) {
		x.slots = append(x.slots, slot{})
	}
	at := &x.slots[r.Slot]
	if at.taken && r.Instance < at.instance {
		return nil
	}
	return at
}

// clear drops everything a slot holds.
func (x *Index) clear(at *slot) {
	x.tip = tip{}
	s := at.shelf
	if s == nil {
		return
	}
	for s.len() > 0 {
		x.drop(s, s.last())
	}
	at.shelf = nil
	if x.oldest == s {
		x.oldest = nil
	}
}

// SetCapacity bounds the instance to so many blocks, from the size of its engine's cache; n below 1
// means that the size is not known.
func (x *Index) SetCapacity(r fleet.Ref, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shelf(r)
	if s == nil {
		return
	}
	if n < 1 {
		n = x.opts.Default
	}
	x.tip = tip{}
	s.limit = min(n, x.opts.Total)
	for s.used > s.limit {
		x.evict(s)
	}
}

// Remove forgets the instance, for good: what is said of it later changes nothing.
func (x *Index) Remove(r fleet.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := x.slot(r); at != nil {
		x.clear(at)
		at.instance, at.taken = r.Instance, true
	}
}
