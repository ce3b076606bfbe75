package prefix

import (
	"math/bits"

	"github.com/presage-router/presage/features/fleet"
)

// Match sets hits[i] to the number of leading blocks that snap.States[i] is believed to hold: 0 for
// instances the index does not know, and for those whose engine was found not to cache prefixes.
// hits must be as long as snap.States. Beyond the first 32 blocks, groups of 4 are remembered as one: up to
// 3 that are held are not counted.
func (x *Index) Match(blocks []uint64, snap *fleet.Snapshot, hits []int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.alive, x.state = zeroed(x.alive, x.table.words), zeroed(x.state, len(x.slots))
	x.tip = tip{} // what is put next is another request
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
	depth, id := int32(0), uint32(0)
	for n := x.grain.links(len(blocks)); left && int(depth) < n; depth++ {
		if id = x.table.after(id, blocks[x.grain.blocks(int(depth)+1)-1]); id == 0 {
			break
		}
		left = false
		for w, holders := range x.table.holders(id) {
			was := x.alive[w]
			now := was & holders
			if was != now {
				x.settle(w, was&^now, x.grain.blocks(int(depth)), hits)
				x.alive[w] = now
			}
			left = left || now != 0
		}
	}
	for w, set := range x.alive {
		x.settle(w, set, x.grain.blocks(int(depth)), hits)
	}
}

// settle gives the slots of a word of a set their hits.
func (x *Index) settle(word int, set uint64, n int, hits []int32) {
	for ; set != 0; set &= set - 1 {
		hits[x.state[word*64+bits.TrailingZeros64(set)]] = int32(n)
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
