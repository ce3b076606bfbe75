package prefix

import (
	"testing"

	"pgregory.net/rapid"
)

// TestGrain: what two prompts share is found to the block at their beginning and to four further on,
// and never more than they share.
func TestGrain(t *testing.T) {
	x := NewIndex(Options{})
	a := ref(0, 1)
	chain := run(1, 100)
	x.Insert(a, chain)
	for shared, want := range map[int]int32{1: 1, 31: 31, 32: 32, 33: 32, 35: 32, 36: 36, 39: 36, 99: 96, 100: 100} {
		other := append(append([]uint64{}, chain[:shared]...), run(2, 100)...)
		wantHits(t, match(x, other, a), want)
		wantHits(t, match(x, chain[:shared], a), want)
	}
	if st := x.Stats(); st.Blocks != 100 || st.Distinct != 100 {
		t.Errorf("%+v", st)
	}
	x.SetCapacity(a, 41)
	wantHits(t, match(x, chain, a), 40)
	x.Correct(a, chain, 33, 40)
	wantHits(t, match(x, chain, a), 40)
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}

func TestGrainCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := grain{fine: rapid.IntRange(1, 40).Draw(t, "fine"), stride: rapid.IntRange(1, 9).Draw(t, "stride")}
		chain := make([]uint64, rapid.IntRange(0, 100).Draw(t, "blocks"))
		for i := range chain {
			chain[i] = uint64(i)
		}
		thin, sum := g.thin(nil, chain), 0
		if len(thin) != g.links(len(chain)) {
			t.Fatalf("%d links, counted %d", len(thin), g.links(len(chain)))
		}
		for i, h := range thin {
			sum += int(g.weight(i))
			if sum != g.blocks(i+1) || h != uint64(sum-1) {
				t.Fatalf("link %d is block %d and stands for all up to %d, counted %d", i, h, sum, g.blocks(i+1))
			}
		}
		if left := len(chain) - sum; left < 0 || left >= g.stride {
			t.Fatalf("%d blocks are left over", left)
		}
	})
}
