package prefix

import (
	"math/rand/v2"
	"testing"
)

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
