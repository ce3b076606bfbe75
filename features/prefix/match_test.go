package prefix

import "testing"

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
