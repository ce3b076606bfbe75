package prefix

// use says on whose behalf a chain is put.
type use uint8

const (
	insert  use = iota // a request that begins
	confirm            // one that has begun before, and was computed
)

// tip is the chain that was confirmed last, until anything else is done or asked: where the answer that
// continues it comes next, nothing of the prompt need be touched again.
type tip struct {
	shelf *shelf
	walk  walk // at its last block
	hash  uint64
	n     int // of remembered blocks
}

// put makes a chain, of remembered blocks, the most recent of its instance, root first, adding what is missing and
// evicting what there is no room for. The end of a chain that has no room at all is left out.
func (x *Index) put(s *shelf, blocks []uint64, u use) {
	blocks = blocks[:min(len(blocks), x.grain.links(min(s.limit, x.opts.Total)))]
	var w walk
	all, base := blocks, 0
	if t := &x.tip; u == insert && t.shelf == s && t.n < len(blocks) && blocks[t.n-1] == t.hash {
		w, base = t.walk, t.n
		blocks = blocks[base:]
	} else {
		x.tick()
	}
	// What is there moves to the front before anything is added, so that room spares it. Behind a
	// block that nobody holds there is nothing.
	from := w
	x.found = x.found[:0]
	for _, hash := range blocks {
		e := w.next(x, s, hash)
		if w.id == 0 {
			break
		}
		x.found = append(x.found, e)
	}
	x.raise(s, from.entry, x.found, u)
	w = from
	for i, e := range x.found {
		if e == 0 {
			x.add(s, &w, blocks[i], x.grain.weight(base+i), u)
		} else {
			w = walk{id: s.entries[e].id, entry: e}
		}
	}
	for i := len(x.found); i < len(blocks); i++ {
		x.add(s, &w, blocks[i], x.grain.weight(base+i), u)
	}
	x.tip = tip{}
	if u == confirm {
		x.tip = tip{shelf: s, walk: w, hash: all[len(all)-1], n: len(all)}
	}
}

// raise moves entries behind another one, in their order, by runs that already lie in it. Zeros and
// repetitions are passed over.
func (x *Index) raise(s *shelf, at uint32, found []uint32, u use) {
	for i := 0; i < len(found); {
		first := found[i]
		i++
		if first == 0 || s.entries[first].stamp == x.clock {
			continue
		}
		s.entries[first].touch(x.clock, u)
		last := first
		for ; i < len(found) && found[i] != 0 && found[i] == s.entries[last].next && s.entries[found[i]].stamp != x.clock; i++ {
			last = found[i]
			s.entries[last].touch(x.clock, u)
		}
		s.move(first, last, at)
		at = last
	}
}

// walk goes down a chain on a shelf. Blocks that were put together lie together, in the table and on
// the shelf, so that mostly neither is searched.
type walk struct{ id, entry uint32 } // the last block and entry found; 0: none

// next returns the entry of the next block, or 0.
func (w *walk) next(x *Index, s *shelf, hash uint64) uint32 {
	id := x.table.after(w.id, hash)
	w.id = id
	if id == 0 || !x.table.has(id, s.slot) {
		return 0
	}
	e := s.entries[w.entry].next
	if s.entries[e].id != id {
		e = s.find(id)
	}
	w.entry = e
	return e
}

// add puts a block on a shelf, after the last one walked.
func (x *Index) add(s *shelf, w *walk, hash uint64, weight uint16, u use) {
	id := x.table.after(w.id, hash)
	if id != 0 && x.table.has(id, s.slot) { // what repeats a block is no chain, but must do no harm
		e := s.find(id)
		if s.entries[e].stamp != x.clock {
			s.entries[e].touch(x.clock, u)
			s.move(e, e, w.entry)
		}
		*w = walk{id: id, entry: e}
		return
	}
	if x.room(s, int(weight)) && id != 0 {
		id = x.table.after(w.id, hash) // it may be gone
	}
	if id == 0 {
		x.distinct += int(weight)
	}
	id = x.table.take(id, w.id, hash, s.slot)
	*w = walk{id: id, entry: s.add(id, w.entry, x.clock, weight)}
	s.entries[w.entry].touch(x.clock, u)
	x.total += int(weight)
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
