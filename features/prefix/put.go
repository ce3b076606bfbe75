package prefix

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
