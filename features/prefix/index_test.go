package prefix

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
		n, stamp := 0, ^uint32(0)
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
		}
		unused := 0
		for e := s.free; e != 0; e = s.entries[e].next {
			unused++
		}
		if n != s.len() || n > s.limit || n+unused+1 != len(s.entries) {
			return fmt.Errorf("slot %d: %d linked, %d indexed, limit %d, %d unused of %d", slot, n, s.len(), s.limit, unused, len(s.entries))
		}
		total += n
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

func TestMatch(t *testing.T) {
	x := NewIndex(Options{})
	a, b, c := ref(0, 1), ref(1, 2), ref(70, 3)
	x.Insert(a, path(1, 2, 3, 4))
	x.Insert(b, path(1, 2))
	x.Insert(c, path(1, 2, 9))
	wantHits(t, match(x, path(1, 2, 3, 4, 5), a, b, c), 4, 2, 2)
	wantHits(t, match(x, path(1, 2, 9), c, b, a), 3, 2, 2)
	wantHits(t, match(x, path(2), a, b, c), 0, 0, 0)
	wantHits(t, match(x, nil, a, b, c), 0, 0, 0)
	wantHits(t, match(x, path(1), ref(5, 9), ref(-1, 9), ref(1<<20, 9)), 0, 0, 0)
}

// TestLeft: a hit is never given for an instance that left; a slot taken again inherits nothing,
// and late news of the old instance change nothing.
func TestLeft(t *testing.T) {
	x := NewIndex(Options{})
	chain := path(1, 2, 3)
	old, young := ref(4, 7), ref(4, 8)
	x.Insert(old, chain)
	wantHits(t, match(x, chain, young), 0)
	x.Remove(old)
	wantHits(t, match(x, chain, old), 0)
	x.Insert(old, chain)
	x.Correct(old, chain, 0, 3)
	x.SetCapacity(old, 10)
	wantHits(t, match(x, chain, old, young), 0, 0)
	if st := x.Stats(); st.Blocks != 0 || st.Endpoints != 0 {
		t.Errorf("after removal: %+v", st)
	}
	x.Insert(young, chain[:1])
	x.Insert(old, chain)
	x.Remove(old)
	wantHits(t, match(x, chain, young), 1)

	// A newer instance in the slot is enough; Remove may come later or never.
	third := ref(4, 9)
	x.Insert(third, path(5))
	wantHits(t, match(x, chain, young, third), 0, 0)
	wantHits(t, match(x, path(5), third), 1)
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}

// TestEvictsLastBlocksFirst: what is left of a chain is its beginning, and the least recent chain
// goes first.
func TestEvictsLastBlocksFirst(t *testing.T) {
	x := NewIndex(Options{})
	e := ref(0, 1)
	x.SetCapacity(e, 6)
	first, second := run(1, 4), run(2, 4)
	x.Insert(e, first)
	x.Insert(e, second)
	wantHits(t, match(x, first, e), 2)
	wantHits(t, match(x, second, e), 4)
	x.Insert(e, first[:1]) // the root is used again; second is now the least recent
	x.Insert(e, run(3, 3))
	wantHits(t, match(x, first, e), 1)
	wantHits(t, match(x, second, e), 2)
	x.Insert(e, run(4, 100))
	wantHits(t, match(x, run(4, 100), e), 6)
	x.SetCapacity(e, 2)
	wantHits(t, match(x, run(4, 100), e), 2)
	x.SetCapacity(e, 0)
	if s, ok := x.Shelf(e); !ok || s.Capacity != DefaultCapacity || s.Blocks != 2 || !s.Believed {
		t.Errorf("shelf %+v, %v", s, ok)
	}
	if _, ok := x.Shelf(ref(0, 2)); ok {
		t.Error("a shelf of an unknown instance")
	}
}

// TestTotalCap: past the total cap the least recent chain of any endpoint goes, busy or not.
func TestTotalCap(t *testing.T) {
	x := NewIndex(Options{Total: 10, Default: 8})
	a, b := ref(0, 1), ref(1, 2)
	x.Insert(a, run(1, 6))
	x.Insert(b, run(2, 4))
	x.Insert(b, run(3, 3))
	wantHits(t, match(x, run(1, 6), a, b), 3, 0)
	x.Insert(a, run(1, 3)) // a's are the most recent now
	x.Insert(a, run(4, 5))
	wantHits(t, match(x, run(2, 4), a, b), 0, 0)
	wantHits(t, match(x, run(3, 3), a, b), 0, 2)
	wantHits(t, match(x, run(1, 3), a, b), 3, 0)
}

// TestDoubt: an engine that answers several claims in a row with nothing is not believed until it
// reports something.
func TestDoubt(t *testing.T) {
	x := NewIndex(Options{})
	e := ref(0, 1)
	ask := func(seed, held int) int32 {
		chain := run(seed, 4)
		claimed := match(x, chain, e)[0]
		x.Insert(e, chain)
		x.Correct(e, chain, held, int(claimed))
		return claimed
	}
	ask(0, 0)
	for i := range doubtAfter {
		if got := ask(0, 0); got != 4 {
			t.Fatalf("claim %d: %d blocks, want 4", i, got)
		}
	}
	if got := ask(0, 0); got != 0 {
		t.Errorf("claims %d blocks of an engine that never held any", got)
	}
	if st := x.Stats(); st.Doubted != 1 {
		t.Errorf("stats %+v", st)
	}
	ask(0, 3)
	if got := ask(0, 4); got != 4 {
		t.Errorf("claims %d blocks after a report of some, want 4", got)
	}
	for range 3 { // in a row, or not at all
		for range doubtAfter - 1 {
			if got := ask(0, 0); got != 4 {
				t.Fatalf("claims %d blocks of an engine that has just held some, want 4", got)
			}
		}
		ask(0, 1)
	}
	if got := ask(0, 1); got != 4 {
		t.Errorf("claims %d blocks of an engine that sometimes holds some, want 4", got)
	}
}

// TestDoubtHerd: a herd of requests whose common prefix is still being computed proves nothing.
func TestDoubtHerd(t *testing.T) {
	x := NewIndex(Options{})
	e := ref(0, 1)
	var herd [][]uint64
	for i := range 3 * doubtAfter {
		herd = append(herd, path(1, 1, 1, 1, 100+i))
	}
	claimed := make([]int32, len(herd))
	for i, c := range herd {
		claimed[i] = match(x, c, e)[0]
		x.Insert(e, c)
	}
	old := run(2, 5)
	x.Insert(e, old)
	for i, c := range herd {
		x.Correct(e, c, 0, int(claimed[i]))
	}
	wantHits(t, match(x, herd[0], e), 5)
	wantHits(t, match(x, old, e), 5)
}

// TestDoubtNotComputed: blocks that no request is known to have finished are no claim to go by.
func TestDoubtNotComputed(t *testing.T) {
	x := NewIndex(Options{})
	e := ref(0, 1)
	for i := range 3 * doubtAfter {
		x.Insert(e, run(i, 4))
		x.Insert(e, append(run(i, 4), 1))
		x.Correct(e, append(run(i, 4), 1), 0, 4)
	}
	if s, _ := x.Shelf(e); !s.Believed {
		t.Error("an engine is doubted for what it was still computing")
	}
}

// TestLostBlocks: where the engine had dropped blocks, what it used before these is gone too, and
// what it used since is kept.
func TestLostBlocks(t *testing.T) {
	x := NewIndex(Options{})
	e := ref(0, 1)
	serve := func(chain []uint64, held int) {
		claimed := match(x, chain, e)[0]
		x.Insert(e, chain)
		if held < 0 {
			held = int(claimed)
		}
		x.Correct(e, chain, held, int(claimed))
	}
	oldest, lost, young := run(1, 8), run(2, 8), run(3, 8)
	serve(oldest, 0)
	serve(lost, 0)
	serve(young, 0)
	longer := append(path(2, 0, 0, 0, 0, 0, 0, 0), 77)
	serve(longer, 0)
	wantHits(t, match(x, oldest, e), 0)
	wantHits(t, match(x, longer, e), 9)
	wantHits(t, match(x, young, e), 8)
	if st := x.Stats(); st.Lost != 8 {
		t.Errorf("stats %+v, want 8 lost", st)
	}

	// A small shortfall is an error of conversion, not a loss.
	serve(append(path(3, 0, 0, 0, 0, 0, 0, 0), 78), 8)
	serve(run(4, 8), 0)
	serve(append(path(2, 0, 0, 0, 0, 0, 0, 0), 77, 78), 6)
	serve(append(run(4, 8), 79), 5)
	wantHits(t, match(x, young, e), 8)
	serve(append(run(4, 8), 79, 80), 5)
	wantHits(t, match(x, young, e), 0)
}

// TestLostSiblings: what an earlier request used beyond the lost block goes with it.
func TestLostSiblings(t *testing.T) {
	x := NewIndex(Options{})
	e := ref(0, 1)
	long := path(1, 2, 3, 4, 5, 6, 7, 8)
	x.Insert(e, long)
	x.Correct(e, long, 0, 0)
	other := path(1, 2, 3, 4, 9)
	x.Insert(e, other)
	x.Correct(e, other, 1, 4)
	wantHits(t, match(x, other, e), 5)
	wantHits(t, match(x, long, e), 4)
	if st := x.Stats(); st.Lost != 4 {
		t.Errorf("%+v, want 4 lost", st)
	}
}

// TestTotalCapNewcomer: an endpoint that comes after the least recent one was found has its turn.
func TestTotalCapNewcomer(t *testing.T) {
	x := NewIndex(Options{Total: 6})
	a, b := ref(0, 1), ref(1, 2)
	x.Insert(a, run(1, 6))
	x.Insert(a, run(2, 1)) // evicts from a, the only one
	x.Insert(b, run(3, 2)) // takes two of a's
	x.Insert(a, run(1, 3))
	x.Insert(a, run(2, 1))
	x.Insert(a, run(4, 1)) // b's are the least recent now
	wantHits(t, match(x, run(3, 2), b), 1)
	wantHits(t, match(x, run(1, 3), a), 3)
}

// TestWithdraw: a failed request takes back what it alone had put.
func TestWithdraw(t *testing.T) {
	x := NewIndex(Options{})
	e := ref(0, 1)
	x.Insert(e, path(1, 2))
	failed := path(1, 2, 3, 4)
	x.Insert(e, failed)
	x.Withdraw(e, failed, 2)
	wantHits(t, match(x, failed, e), 2)

	other := path(1, 2, 3, 5)
	x.Insert(e, failed)
	x.Insert(e, other)
	x.Withdraw(e, failed, 2)
	wantHits(t, match(x, failed, e), 3)
	wantHits(t, match(x, other, e), 4)
	x.Withdraw(e, other, 2)
	wantHits(t, match(x, other, e), 2)
	x.Withdraw(e, other, -3) // a wrong count does no harm
	x.Withdraw(e, other, 99)
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}

// TestStampsWrap: the clock runs over, and order stays.
func TestStampsWrap(t *testing.T) {
	x := NewIndex(Options{Total: 8})
	a, b := ref(0, 1), ref(1, 2)
	x.clock = ^uint32(0) - 4
	for i := range 20 {
		x.Insert(a, run(i, 2))
		x.Correct(a, run(i, 2), 0, 0)
		x.Insert(b, run(100+i, 2))
		if err := x.consistent(); err != nil {
			t.Fatal(err)
		}
		wantHits(t, match(x, run(i, 2), a), 2)
		wantHits(t, match(x, run(100+i, 2), b), 2)
		if i > 2 {
			wantHits(t, match(x, run(i-1, 2), a), 2)
			wantHits(t, match(x, run(i-2, 2), a), 0)
		}
	}
}

// TestIndexOracle compares every operation, under churn, with the index by brute force.
func TestIndexOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Total: rapid.IntRange(1, 40).Draw(t, "total"), Default: rapid.IntRange(1, 20).Draw(t, "default")}
		x, want := NewIndex(o), newOracle(o)
		slots := []int{0, 1, 2, 63, 64, 130}
		instance := map[int]uint64{}
		next := uint64(1)
		for _, s := range slots {
			instance[s], next = next, next+1
		}
		draw := func(t *rapid.T) fleet.Ref {
			s := rapid.SampledFrom(slots).Draw(t, "slot")
			r := ref(s, instance[s])
			if rapid.IntRange(0, 19).Draw(t, "stale") == 0 && r.Instance > 0 {
				r.Instance-- // some other slot's, or one that left
			}
			return r
		}
		chain := func(t *rapid.T) []uint64 {
			return path(rapid.SliceOfN(rapid.IntRange(0, 1), 0, 7).Draw(t, "path")...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				r, c := draw(t), chain(t)
				x.Insert(r, c)
				want.insert(r, c)
			},
			"correct": func(t *rapid.T) {
				r, c := draw(t), chain(t)
				claimed := rapid.IntRange(0, len(c)).Draw(t, "claimed")
				got := rapid.IntRange(0, len(c)).Draw(t, "held")
				if rapid.Bool().Draw(t, "none") {
					got = 0
				}
				x.Correct(r, c, got, claimed)
				want.correct(r, c, got, claimed)
			},
			"serve": func(t *rapid.T) { // as a router does: match, insert, correct
				r := draw(t)
				c := path(rapid.SliceOfN(rapid.IntRange(0, 1), 4, 12).Draw(t, "path")...)
				claimed := int(match(x, c, r)[0])
				got := rapid.SampledFrom([]int{0, claimed / 2, claimed}).Draw(t, "held")
				x.Insert(r, c)
				want.insert(r, c)
				x.Correct(r, c, got, claimed)
				want.correct(r, c, got, claimed)
			},
			"withdraw": func(t *rapid.T) {
				r, c := draw(t), chain(t)
				got := rapid.IntRange(0, len(c)).Draw(t, "held")
				x.Withdraw(r, c, got)
				want.withdraw(r, c, got)
			},
			"capacity": func(t *rapid.T) {
				r, n := draw(t), rapid.IntRange(-1, 20).Draw(t, "n")
				x.SetCapacity(r, n)
				want.resize(r, n)
			},
			"leave": func(t *rapid.T) {
				r := draw(t)
				x.Remove(r)
				want.remove(r)
				if r.Instance == instance[r.Slot] {
					instance[r.Slot], next = next, next+1
				}
			},
			"": func(t *rapid.T) {
				if err := x.consistent(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.summary(), x.Stats()); diff != "" {
					t.Fatalf("stats (-want +got):\n%s", diff)
				}
				var refs []fleet.Ref
				for _, s := range slots {
					refs = append(refs, ref(s, instance[s]))
				}
				refs[2].Instance-- // a snapshot may show what has left
				c := chain(t)
				snap := snapshot(refs...)
				hits := make([]int32, len(refs))
				x.Match(c, snap, hits)
				for i := range refs {
					if w := want.match(c, &snap.States[i]); w != hits[i] {
						t.Fatalf("slot %d: %d hits of %x, want %d", refs[i].Slot, hits[i], c, w)
					}
				}
			},
		})
	})
}

// TestB27Churn: a thousand endpoints come and go; each leaves nothing behind, and memory does not
// grow with their number.
func TestB27Churn(t *testing.T) {
	x := NewIndex(Options{Total: 200_000, Default: 10_000})
	const prompts, blocks = 200, 8000 / DefaultBlock
	table := 0
	for cycle := range 1000 / slow {
		e := ref(cycle%3, uint64(cycle+1))
		for p := range prompts {
			x.Insert(e, run(cycle*prompts+p, blocks))
		}
		if s, _ := x.Shelf(e); s.Blocks != prompts*blocks || s.Capacity != 10_000 {
			t.Fatalf("cycle %d: %+v", cycle, s)
		}
		x.Remove(e)
		if st := x.Stats(); st.Blocks != 0 || st.Distinct != 0 || st.Endpoints != 0 {
			t.Fatalf("cycle %d: left behind: %+v", cycle, st)
		}
		if cycle == 50 {
			table = cap(x.table.cells.at) + cap(x.table.records) + cap(x.table.free) + cap(x.slots)
		}
	}
	if now := cap(x.table.cells.at) + cap(x.table.records) + cap(x.table.free) + cap(x.slots); now > table {
		t.Errorf("tables grew from %d after cycle 50 to %d", table, now)
	}
}

// TestB27TotalCap: the configured caps hold at all times, per endpoint and in total.
func TestB27TotalCap(t *testing.T) {
	const endpoints, perEndpoint, total = 100, 1000, 20_000
	x := NewIndex(Options{Total: total, Default: perEndpoint})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 / slow {
		e := ref(rng.IntN(endpoints), 1)
		x.Insert(e, run(i, 31))
		if st := x.Stats(); st.Blocks > total {
			t.Fatalf("%d blocks after %d prompts, cap %d", st.Blocks, i+1, total)
		}
		if s, _ := x.Shelf(e); s.Blocks > perEndpoint {
			t.Fatalf("%d blocks on one endpoint after %d prompts, cap %d", s.Blocks, i+1, perEndpoint)
		}
	}
	if st := x.Stats(); st.Blocks != total {
		t.Errorf("%d blocks held in the end, want the cap of %d", st.Blocks, total)
	}
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}

// TestConcurrent runs all methods against each other, for the race detector, with a fleet whose
// endpoints come and go.
func TestConcurrent(t *testing.T) {
	var f fleet.Fleet
	now := time.Unix(1, 0)
	endpoints := func(n int) (es []*fleet.Endpoint) {
		for i := range n {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000)
			es = append(es, &fleet.Endpoint{Name: addr.String(), Addr: addr, TP: 1})
		}
		return es
	}
	if _, err := f.Sync(now, endpoints(8)); err != nil {
		t.Fatal(err)
	}
	x := NewIndex(Options{Total: 500, Default: 100})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			var snap fleet.Snapshot
			var hits []int32
			for i := range 500 {
				f.Snapshot(now, &snap)
				hits = zeroed(hits, len(snap.States))
				chain := run(rng.IntN(20), 1+rng.IntN(20))
				x.Match(chain, &snap, hits)
				k := rng.IntN(len(snap.States))
				s := &snap.States[k]
				r := fleet.Ref{Slot: s.Slot, Instance: s.Instance, Endpoint: s.Endpoint}
				if hits[k] > int32(len(chain)) {
					t.Errorf("%d hits of %d blocks", hits[k], len(chain))
				}
				x.Insert(r, chain)
				switch i % 3 {
				case 0:
					x.Correct(r, chain, rng.IntN(len(chain)+1), int(hits[k]))
				case 1:
					x.Withdraw(r, chain, int(hits[k]))
				}
				x.SetCapacity(r, 50+rng.IntN(50))
				x.Stats()
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			ch, err := f.Sync(now, endpoints(4+i%5))
			if err != nil {
				t.Error(err)
			}
			for _, r := range ch.Removed {
				x.Remove(r)
			}
		}
	})
	wg.Wait()
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}

// FuzzIndex drives an index with arbitrary operations, chains that are none included: whatever it
// is told, it stays consistent and within its bounds.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 10, 20, 30, 1, 1, 2, 3, 10, 20, 30, 2, 1, 2, 3, 10, 20, 30})
	f.Add([]byte{0, 0, 6, 1, 1, 1, 2, 1, 2, 3, 3, 0, 2, 4, 0, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		x := NewIndex(Options{Total: 12, Default: 7})
		byteAt := func() int {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return int(b)
		}
		for len(in) > 0 {
			what, r := byteAt()%6, ref(byteAt()%130-1, uint64(byteAt()%4))
			chain := make([]uint64, byteAt()%12)
			for i := range chain {
				chain[i] = uint64(byteAt() % 16)
			}
			switch what {
			case 0, 1:
				x.Insert(r, chain)
			case 2:
				x.Correct(r, chain, byteAt()%14-1, byteAt()%14-1)
			case 3:
				x.Withdraw(r, chain, byteAt()%14-1)
			case 4:
				x.SetCapacity(r, byteAt()%14-1)
			case 5:
				x.Remove(r)
			}
			hits := match(x, chain, r, ref(0, 1))
			for _, h := range hits {
				if h < 0 || int(h) > len(chain) {
					t.Fatalf("%d hits of %d blocks", h, len(chain))
				}
			}
			if err := x.consistent(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
