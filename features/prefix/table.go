package prefix

// table numbers the distinct blocks from 1 and knows, for each, the set of slots that hold it.
// Match reads nothing else: one look-up and a few words per block, however many endpoints hold it.
type table struct {
	cells   cells
	records []uint64 // by id, 1+words each: the block's hash, then the bit set of its holders
	follow  []uint32 // by id: the block found after it last, a guess at what follows; 0: none
	words   int
	free    []uint32 // ids not in use
	seed    uint64   // odd, and secret: prompts cannot be made to collide in cells
}

func newTable(seed uint64) table {
	return table{cells: newCells(), records: make([]uint64, 2), follow: make([]uint32, 1), words: 1, seed: seed | 1}
}

func (t *table) len() int { return t.cells.n }

// key spreads a hash over the cells.
func (t *table) key(hash uint64) uint32 { return uint32(hash * t.seed >> 32) }

func (t *table) record(id uint32) []uint64 {
	n := 1 + t.words
	return t.records[int(id)*n : (int(id)+1)*n]
}

// find returns the id of a block, or 0.
func (t *table) find(hash uint64) uint32 {
	key := t.key(hash)
	for i := t.cells.home(key); ; i = t.cells.next(i) {
		switch c := t.cells.at[i]; {
		case c.val == 0:
			return 0
		case c.key == key && t.records[int(c.val)*(1+t.words)] == hash:
			return c.val
		}
	}
}

// after returns the id of the block that follows another in a chain, or 0. Chains are walked over and
// over, so that what followed last time is the first guess: it lies next to its predecessor, where a
// search of the cells misses every cache. The first block of a chain follows 0.
func (t *table) after(prev uint32, hash uint64) uint32 {
	if g := t.follow[prev]; t.records[int(g)*(1+t.words)] == hash && g != 0 && hash != 0 {
		return g
	}
	id := t.find(hash)
	if id != 0 {
		t.follow[prev] = id
	}
	return id
}

// has reports whether a slot holds a block.
func (t *table) has(id uint32, slot int) bool {
	return t.records[int(id)*(1+t.words)+1+slot/64]>>(slot%64)&1 != 0
}

// holders is the bit set of the slots that hold a block.
func (t *table) holders(id uint32) []uint64 { return t.record(id)[1:] }

// take adds a slot to the holders of a block that follows another, given its id or 0 if nobody held
// it, and returns the id.
func (t *table) take(id, prev uint32, hash uint64, slot int) uint32 {
	if id == 0 {
		if n := len(t.free); n > 0 {
			id, t.free = t.free[n-1], t.free[:n-1]
		} else {
			id = uint32(len(t.follow))
			t.follow = append(t.follow, 0)
			for range 1 + t.words {
				t.records = append(t.records, 0)
			}
		}
		t.record(id)[0] = hash
		t.cells.put(t.key(hash), id)
		t.follow[prev] = id
	}
	t.holders(id)[slot/64] |= 1 << (slot % 64)
	return id
}

// drop takes a slot out of the holders of a block, and the block with its last holder; then it
// returns true.
func (t *table) drop(id uint32, slot int) bool {
	set := t.holders(id)
	set[slot/64] &^= 1 << (slot % 64)
	for _, w := range set {
		if w != 0 {
			return false
		}
	}
	hash := &t.record(id)[0]
	t.cells.remove(t.key(*hash), id)
	*hash = 0 // so that no guess meets it
	t.free = append(t.free, id)
	return true
}

// widen makes the sets hold so many slots.
func (t *table) widen(slots int) {
	words := (slots + 63) / 64
	if words <= t.words {
		return
	}
	old, n := t.records, 1+t.words
	t.records = make([]uint64, len(old)/n*(1+words), cap(old)/n*(1+words))
	t.words = words
	for id := range len(old) / n {
		copy(t.record(uint32(id)), old[id*n:(id+1)*n])
	}
}
