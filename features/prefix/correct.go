package prefix

import "github.com/presage-router/presage/features/fleet"

// Thresholds of [Index.Correct].
const (
	doubtAfter = 8 // claims in a row without anything held, and the engine is not believed to cache
	doubtFrom  = 2 // blocks; an engine may well round a shorter claim down to nothing
)

// Correct notes that the engine held only the first held of blocks when it started on them, where
// the index had claimed the first claimed ones. The request has ended: its prefill was done, so the
// engine holds all of blocks now, and they become its most recent.
//
// Two things are learned from a claim that was not met:
//
//   - An engine that held nothing for several claims in a row does not cache prefixes, or not so
//     that it helps: it gets no hits until it reports some. Only claims of blocks that an earlier
//     request had finished computing count, as some engines cannot share the prefill under way.
//   - Engines evict in the order of last use, of one request the last blocks first. If the engine had
//     lost blocks, all it last used before them is likely gone too, and what it used together with
//     them and this request does not, which is further from the root; both are dropped. That is done only where it is certain
//     which use the claim stood on: the blocks were known to be computed before this request came
//     (its first unclaimed block was added then) and by no request since. A shortfall of up to a
//     quarter, and one block, is taken for the error of converting tokens to blocks.
func (x *Index) Correct(r fleet.Ref, blocks []uint64, held, claimed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shelf(r)
	if s == nil || len(blocks) == 0 {
		return
	}
	claimed = min(max(claimed, 0), len(blocks))
	held = min(max(held, 0), len(blocks))
	short := claimed-held > 1+claimed/4
	none := held == 0 && claimed >= doubtFrom
	claimed, held, blocks = x.grain.links(claimed), x.grain.links(held), x.thin(blocks)
	switch {
	case held > 0:
		s.zeros = 0
	case none && s.zeros < doubtAfter && x.computedBefore(s, blocks[0], x.came(s, blocks, claimed)):
		s.zeros++
	}
	if short && claimed < len(blocks) {
		x.lose(s, blocks[held], x.came(s, blocks, claimed))
	}
	x.put(s, blocks, confirm)
}

// believed reports whether the engine is believed to cache prefixes.
func (s *shelf) believed() bool { return s.zeros < doubtAfter }

// came is when the request of a chain came: when its first unclaimed block was added, or, where
// all was claimed, at the latest when its last block was last touched. 0: not known.
func (x *Index) came(s *shelf, blocks []uint64, claimed int) uint32 {
	if claimed < len(blocks) {
		return s.entries[x.entry(s, blocks[claimed])].born
	}
	return s.entries[x.entry(s, blocks[len(blocks)-1])].stamp
}

// computedBefore reports whether a block was last known to be computed before a time.
func (x *Index) computedBefore(s *shelf, hash uint64, t uint32) bool {
	c := s.entries[x.entry(s, hash)].computed
	return c != 0 && c < t
}

// lose drops what the instance used no later than it last used a block that its engine has lost.
func (x *Index) lose(s *shelf, hash uint64, came uint32) {
	if !x.computedBefore(s, hash, came) {
		return
	}
	since := s.entries[x.entry(s, hash)].computed
	for s.len() > 0 && s.entries[s.last()].stamp <= since {
		x.lost += x.drop(s, s.last())
	}
}

// Withdraw takes back blocks beyond the first held: the request failed before its prefill. Blocks
// that another request has put as well, before or since, stay, and so do those that one is known to
// have computed.
func (x *Index) Withdraw(r fleet.Ref, blocks []uint64, held int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shelf(r)
	if s == nil {
		return
	}
	x.tip = tip{}
	held, blocks = x.grain.links(min(max(held, 0), len(blocks))), x.thin(blocks)
	for i := len(blocks) - 1; i >= held; i-- {
		e := x.entry(s, blocks[i])
		if e == 0 {
			continue
		}
		switch b := &s.entries[e]; {
		case b.uses > 1:
			b.uses--
		case b.computed == 0:
			x.withdrawn += x.drop(s, e)
		}
	}
}
