package prefix

import "testing"

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
