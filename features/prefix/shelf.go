package prefix

// shelf is what one instance is believed to hold: a list of entries from the most to the least
// recent, in one slab. Entry 0 is the ring's sentinel, so that 0 also means none.
type shelf struct {
	slot    int
	limit   int   // capacity in blocks
	used    int   // blocks that the entries stand for
	cells   cells // block id, spread, to entry
	entries []entry
	free    uint32 // first of the unused entries, linked by next
	zeros   int    // claims in a row that the engine answered with nothing held
}

// entry is one remembered block on a shelf. Times are ticks of the index's clock.
type entry struct {
	id         uint32 // of the block in the table
	next, prev uint32 // the less and the more recent entry
	stamp      uint32 // last touched
	born       uint32 // added
	computed   uint32 // last known to be computed, by the end of a request; 0: not yet
	uses       uint16 // requests that put it and did not withdraw it, at most maxUses
	weight     uint16 // blocks it stands for
}

const maxUses = ^uint16(0)

func newShelf(slot, limit int) *shelf {
	return &shelf{slot: slot, limit: limit, cells: newCells(), entries: make([]entry, 1)}
}

func (s *shelf) len() int { return s.cells.n }

// spread makes a key of a block id, one to one: the multiplier is odd. Eight ids in a row, which mostly are
// of one chain, share a line of cells.
func spread(id uint32) uint32 { return id>>3*0x9e3779b1<<3 | id&7 }

// find returns the entry of a block, or 0.
func (s *shelf) find(id uint32) uint32 {
	key := spread(id)
	for i := s.cells.home(key); ; i = s.cells.next(i) {
		if c := s.cells.at[i]; c.key == key || c.val == 0 {
			return c.val
		}
	}
}

// last is the least recent entry, or 0.
func (s *shelf) last() uint32 { return s.entries[0].prev }

// add makes an entry for a block and links it after another.
func (s *shelf) add(id, after, now uint32, weight uint16) uint32 {
	e := s.free
	if e == 0 {
		e = uint32(len(s.entries))
		s.entries = append(s.entries, entry{})
	} else {
		s.free = s.entries[e].next
	}
	s.entries[e] = entry{id: id, stamp: now, born: now, weight: weight}
	s.used += int(weight)
	s.link(e, after)
	s.cells.put(spread(id), e)
	return e
}

func (s *shelf) remove(e uint32) {
	s.unlink(e)
	s.used -= int(s.entries[e].weight)
	s.cells.remove(spread(s.entries[e].id), e)
	s.entries[e] = entry{next: s.free}
	s.free = e
}

// move moves the entries from first to last, which follow each other, behind another one.
func (s *shelf) move(first, last, after uint32) {
	if s.entries[after].next == first {
		return
	}
	prev, next := s.entries[first].prev, s.entries[last].next
	s.entries[prev].next, s.entries[next].prev = next, prev
	next = s.entries[after].next
	s.entries[first].prev, s.entries[last].next = after, next
	s.entries[after].next, s.entries[next].prev = first, last
}

func (s *shelf) link(e, after uint32) {
	next := s.entries[after].next
	s.entries[e].prev, s.entries[e].next = after, next
	s.entries[after].next, s.entries[next].prev = e, e
}

func (s *shelf) unlink(e uint32) {
	prev, next := s.entries[e].prev, s.entries[e].next
	s.entries[prev].next, s.entries[next].prev = next, prev
}

// halve halves all times, see tick. What was set stays set.
func (s *shelf) halve() {
	for i := range s.entries {
		e := &s.entries[i]
		e.stamp, e.born = e.stamp/2, e.born/2
		if e.computed > 1 {
			e.computed /= 2
		}
	}
}
