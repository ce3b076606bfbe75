package prefix

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features/fleet"
)

// path is a chain in a tree of prompts: equal beginnings, equal hashes.
func path(steps ...int) []uint64 {
	chain := make([]uint64, len(steps))
	h := uint64(1)
	for i, s := range steps {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], h)
		binary.LittleEndian.PutUint64(b[8:], uint64(s))
		h = xxhash.Sum64(b[:])
		chain[i] = h
	}
	return chain
}

// run is a chain of n blocks of its own.
func run(seed, n int) []uint64 {
	steps := make([]int, n)
	steps[0] = seed
	return path(steps...)
}

func ref(slot int, instance uint64) fleet.Ref { return fleet.Ref{Slot: slot, Instance: instance} }

// snapshot shows the given instances.
func snapshot(refs ...fleet.Ref) *fleet.Snapshot {
	s := &fleet.Snapshot{}
	for _, r := range refs {
		s.States = append(s.States, fleet.State{Slot: r.Slot, Instance: r.Instance})
		s.Slots = max(s.Slots, r.Slot+1)
	}
	return s
}

func match(x *Index, blocks []uint64, refs ...fleet.Ref) []int32 {
	hits := make([]int32, len(refs))
	for i := range hits {
		hits[i] = -1
	}
	x.Match(blocks, snapshot(refs...), hits)
	return hits
}

func wantHits(t *testing.T, got []int32, want ...int32) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}

// consistent checks the index against itself: lists, sets and counts tell one story.
func (x *Index) consistent() error {
	total, holders := 0, map[uint32]map[int]bool{}
	for slot := range x.slots {
		s := x.slots[slot].shelf
		if s == nil {
			continue
		}
		n, used, stamp := 0, 0, ^uint32(0)
		for e := s.entries[0].next; e != 0; e = s.entries[e].next {
			b := s.entries[e]
			if s.find(b.id) != e || s.entries[b.next].prev != e || s.entries[b.prev].next != e {
				return fmt.Errorf("slot %d: entry %d is badly linked", slot, e)
			}
			if b.stamp > stamp || b.born > b.stamp || b.computed > b.stamp || b.stamp > x.clock {
				return fmt.Errorf("slot %d: entry %d is out of order", slot, e)
			}
			if stamp = b.stamp; b.uses == 0 {
				return fmt.Errorf("slot %d: entry %d has no use", slot, e)
			}
			if holders[b.id] == nil {
				holders[b.id] = map[int]bool{}
			}
			holders[b.id][slot] = true
			n++
			used += int(b.weight)
		}
		unused := 0
		for e := s.free; e != 0; e = s.entries[e].next {
			unused++
		}
		if n != s.len() || used != s.used || used > s.limit || n+unused+1 != len(s.entries) {
			return fmt.Errorf("slot %d: %d linked, %d indexed, limit %d, %d unused of %d", slot, n, s.len(), s.limit, unused, len(s.entries))
		}
		total += used
	}
	if total != x.total || total > x.opts.Total {
		return fmt.Errorf("%d entries, %d counted, at most %d", total, x.total, x.opts.Total)
	}
	if len(holders) != x.table.len() || x.table.len()+len(x.table.free)+1 != len(x.table.records)/(1+x.table.words) {
		return fmt.Errorf("%d blocks held, %d in the table, %d free, %d records of %d words", len(holders), x.table.len(), len(x.table.free), len(x.table.records), 1+x.table.words)
	}
	for id, slots := range holders {
		if got := x.table.find(x.table.record(id)[0]); got != id {
			return fmt.Errorf("block %d is found as %d", id, got)
		}
		for slot := range x.table.words * 64 {
			if set := x.table.holders(id)[slot/64]>>(slot%64)&1 == 1; set != slots[slot] {
				return fmt.Errorf("block %d: slot %d in its set %v, held %v", id, slot, set, slots[slot])
			}
		}
	}
	return nil
}
