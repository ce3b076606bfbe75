package prefix

// room makes room for one more entry of a weight and reports whether anything went for it. The chain that is
// being put is the most recent, and fits, so that none of it is evicted.
func (x *Index) room(s *shelf, weight int) (evicted bool) {
	for s.used+weight > s.limit {
		x.evict(s)
		evicted = true
	}
	for x.total+weight > x.opts.Total {
		x.evict(x.leastRecent())
		evicted = true
	}
	return evicted
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

// evict drops the least recent entry of a shelf.
func (x *Index) evict(s *shelf) { x.evicted += x.drop(s, s.last()) }

// drop takes one entry out and returns how many blocks it stood for.
func (x *Index) drop(s *shelf, e uint32) uint64 {
	weight := int(s.entries[e].weight)
	if x.table.drop(s.entries[e].id, s.slot) {
		x.distinct -= weight
	}
	s.remove(e)
	x.total -= weight
	return uint64(weight)
}

// tick advances the clock. Where it would wrap, which takes weeks, all stamps are halved: order
// stays, and only neighbours become equal.
func (x *Index) tick() {
	if x.clock++; x.clock < ^uint32(0) {
		return
	}
	x.clock = x.clock/2 + 1 // younger than all
	x.oldest = nil
	for i := range x.slots {
		if s := x.slots[i].shelf; s != nil {
			s.halve()
		}
	}
}
