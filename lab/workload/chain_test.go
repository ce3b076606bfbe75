package workload

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// piece is a piece of text: its tokens are (name, offset).
type piece struct {
	Name   uint64
	Tokens int
}

func chainOf(salt uint64, pieces []piece) chain {
	c := newChain(salt)
	for _, p := range pieces {
		c.append(nameOf(1, "piece", int(p.Name)), p.Tokens)
	}
	return c
}

// Two texts share exactly the full blocks of the tokens they have in common from the start.
func TestChainSharesCommonTokens(t *testing.T) {
	gen := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) piece {
		return piece{rapid.Uint64Range(0, 2).Draw(t, "name"), rapid.IntRange(1, 60).Draw(t, "tokens")}
	}), 0, 6)
	tokens := func(pieces []piece) [][2]int {
		var out [][2]int
		for _, p := range pieces {
			for i := range p.Tokens {
				out = append(out, [2]int{int(p.Name), i})
			}
		}
		return out
	}
	common := func(n int, equal func(i int) bool) int {
		for i := range n {
			if !equal(i) {
				return i
			}
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if rapid.Bool().Draw(t, "related") {
			b = append(slices.Clone(a[:len(a)/2]), b...)
		}
		x, y := tokens(a), tokens(b)
		ca, cb := chainOf(0, a), chainOf(0, b)
		if len(ca.blocks) != len(x)/BlockTokens || ca.tokens != len(x) {
			t.Fatalf("%d blocks, %d tokens of %d", len(ca.blocks), ca.tokens, len(x))
		}
		want := common(min(len(x), len(y)), func(i int) bool { return x[i] == y[i] }) / BlockTokens
		got := common(min(len(ca.blocks), len(cb.blocks)), func(i int) bool { return ca.blocks[i] == cb.blocks[i] })
		if got != want {
			t.Fatalf("%v and %v share %d blocks, want %d", a, b, got, want)
		}
		if other := chainOf(1, a); len(x) >= BlockTokens && other.blocks[0] == ca.blocks[0] {
			t.Fatal("texts of different salts share a block")
		}
	})
}

func TestChainForksGrowApart(t *testing.T) {
	c := chainOf(0, []piece{{1, 100}})
	before := slices.Clone(c.view())
	view, f := c.view(), c.fork()
	f.grow(500)
	f.append(7, 500)
	c.append(8, 500)
	if !slices.Equal(view, before) || !slices.Equal(f.blocks[:6], before) || !slices.Equal(c.blocks[:6], before) || f.blocks[6] == c.blocks[6] {
		t.Error("a fork or an append changed what was there")
	}
	if len(f.blocks) != 37 || len(c.blocks) != 37 {
		t.Errorf("%d and %d blocks of 600 tokens", len(f.blocks), len(c.blocks))
	}
}

func TestNamesDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for seed := range uint64(4) {
		for _, label := range []string{"", "a", "b", "ab"} {
			for n := range 500 {
				for _, numbers := range [][]int{{n}, {n, 0}, {0, n + 1}} {
					h := nameOf(seed, label, numbers...)
					if at, ok := seen[h]; ok {
						t.Fatalf("%d %q %v has the name of %s", seed, label, numbers, at)
					}
					seen[h] = label
				}
			}
		}
	}
}
