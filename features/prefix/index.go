package prefix

import (
	"math/bits"
	"math/rand/v2"
	"sync"

	"github.com/presage-router/presage/features/fleet"
)

// Options bound an [Index].
type Options struct {
	Total   int // blocks of all endpoints together; 0: DefaultTotal
	Default int // blocks of an endpoint whose capacity is not known; 0: DefaultCapacity
}

// The bounds of an [Index] where [Options] name none. A block costs about 90 bytes of memory where
// one endpoint holds it, and 45 for every further one.
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
	slots  []slot
	table  table
	clock  uint32 // one tick per chain touched
	total  int    // entries of all shelves
	oldest *shelf // holds the least recent entry of all while that is not younger than until
	until  uint32

	// scratch
	alive []uint64
	state []int32
	found []uint32

	evicted, lost, withdrawn uint64
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
	return &Index{opts: o, table: newTable(rand.Uint64())}
}

// Match sets hits[i] to the number of leading blocks that snap.States[i] is believed to hold: 0 for
// instances the index does not know, and for those whose engine was found not to cache prefixes.
// hits must be as long as snap.States.
func (x *Index) Match(blocks []uint64, snap *fleet.Snapshot, hits []int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.alive, x.state = zeroed(x.alive, x.table.words), zeroed(x.state, len(x.slots))
	left := false
	for i := range snap.States {
		s := &snap.States[i]
		hits[i] = 0
		if s.Slot < 0 || s.Slot >= len(x.slots) {
			continue
		}
		if at := &x.slots[s.Slot]; at.shelf != nil && at.instance == s.Instance && at.shelf.believed() {
			x.alive[s.Slot/64] |= 1 << (s.Slot % 64)
			x.state[s.Slot] = int32(i)
			left = true
		}
	}
	depth := int32(0)
	for ; left && int(depth) < len(blocks); depth++ {
		id := x.table.find(blocks[depth])
		if id == 0 {
			break
		}
		left = false
		for w, holders := range x.table.holders(id) {
			was := x.alive[w]
			now := was & holders
			if was != now {
				x.settle(w, was&^now, depth, hits)
				x.alive[w] = now
			}
			left = left || now != 0
		}
	}
	for w, set := range x.alive {
		x.settle(w, set, depth, hits)
	}
}

// settle gives the slots of a word of a set their hits.
func (x *Index) settle(word int, set uint64, n int32, hits []int32) {
	for ; set != 0; set &= set - 1 {
		hits[x.state[word*64+bits.TrailingZeros64(set)]] = n
	}
}

// zeroed returns s with length n and zero values, growing it only when it must.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Insert notes that the instance computes, or already holds, all of blocks.
func (x *Index) Insert(r fleet.Ref, blocks []uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.shelf(r); s != nil && len(blocks) > 0 {
		x.put(s, blocks, insert)
	}
}

// use says on whose behalf a chain is put.
type use uint8

const (
	insert  use = iota // a request that begins
	confirm            // one that has begun before, and was computed
)

// put makes a chain the most recent of its instance, root first, adding what is missing and
// evicting what there is no room for. The end of a chain that has no room at all is left out.
func (x *Index) put(s *shelf, blocks []uint64, u use) {
	x.tick()
	blocks = blocks[:min(len(blocks), s.limit, x.opts.Total)]
	// What is there moves to the front before anything is added, so that room spares it.
	x.found = x.found[:0]
	for _, hash := range blocks {
		x.found = append(x.found, x.entry(s, hash))
	}
	at := uint32(0) // the entry that the next one comes after
	for _, e := range x.found {
		if e != 0 && e != at {
			s.move(e, at)
			s.entries[e].touch(x.clock, u)
			at = e
		}
	}
	at = 0
	for i, hash := range blocks {
		e := x.found[i]
		if e == 0 {
			e = x.add(s, hash, at, u)
		}
		at = e
	}
}

// add puts a missing block on a shelf, after another entry, and returns its entry.
func (x *Index) add(s *shelf, hash uint64, after uint32, u use) uint32 {
	if e := x.entry(s, hash); e != 0 { // a block twice in one list is no chain, but must do no harm
		return e
	}
	x.room(s)
	e := s.add(x.table.take(hash, s.slot), after, x.clock)
	s.entries[e].touch(x.clock, u)
	x.total++
	return e
}

// touch notes that an entry was used.
func (b *entry) touch(now uint32, u use) {
	b.stamp = now
	if u == confirm {
		b.computed = now
		b.uses = max(b.uses, 1)
	} else if b.uses < maxUses {
		b.uses++
	}
}

// entry returns the entry of a block on a shelf, or 0.
func (x *Index) entry(s *shelf, hash uint64) uint32 {
	if id := x.table.find(hash); id != 0 {
		return s.find(id)
	}
	return 0
}

// room makes room for one more entry. The chain that is being put is the most recent, and fits, so
// that none of it is evicted.
func (x *Index) room(s *shelf) {
	for s.len() >= s.limit {
		x.drop(s, s.last())
		x.evicted++
	}
	for x.total >= x.opts.Total {
		v := x.leastRecent()
		x.drop(v, v.last())
		x.evicted++
	}
}

// leastRecent returns the shelf with the least recent entry of all. The last entry of a shelf only
// ever becomes more recent, and that of a shelf now empty will be as recent as now, so that the
// runner-up of one search, or now, bounds how long its winner stays the least recent.
func (x *Index) leastRecent() *shelf {
	if s := x.oldest; s != nil && s.len() > 0 && s.entries[s.last()].stamp <= x.until {
		return s
	}
	x.oldest = nil
	first := x.clock
	for i := range x.slots {
		s := x.slots[i].shelf
		if s == nil || s.len() == 0 {
			continue
		}
		if stamp := s.entries[s.last()].stamp; x.oldest == nil || stamp < first {
			x.oldest, x.until, first = s, first, stamp
		} else {
			x.until = min(x.until, stamp)
		}
	}
	return x.oldest
}

// drop takes one entry out.
func (x *Index) drop(s *shelf, e uint32) {
	x.table.drop(s.entries[e].id, s.slot)
	s.remove(e)
	x.total--
}

// tick advances the clock. Where it would wrap, which takes weeks, all stamps are halved: order
// stays, and only neighbours become equal.
func (x *Index) tick() {
	if x.clock++; x.clock < ^uint32(0) {
		return
	}
	x.clock /= 2
	x.oldest = nil
	for i := range x.slots {
		if s := x.slots[i].shelf; s != nil {
			s.halve()
		}
	}
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
	s.limit = min(n, x.opts.Total)
	for s.len() > s.limit {
		x.drop(s, s.last())
		x.evicted++
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
