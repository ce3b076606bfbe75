package emulator

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Chains agree as far as the tokens do, block by block, and no further.
func TestChainFollowsTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 16).Draw(t, "size")
		a := rapid.SliceOfN(rapid.Uint32Range(0, 3), 0, 60).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Uint32Range(0, 3), 0, 60).Draw(t, "b")
		x, y := chain(7, a, size), chain(7, b, size)
		if len(x) != len(a)/size {
			t.Fatalf("%d blocks of %d tokens", len(x), len(a))
		}
		for i := range min(len(x), len(y)) {
			same := slices.Equal(a[:(i+1)*size], b[:(i+1)*size])
			if (x[i] == y[i]) != same {
				t.Fatalf("block %d: hashes equal %v, tokens equal %v", i, x[i] == y[i], same)
			}
		}
		if z := chain(8, a, size); len(z) > 0 && z[0] == x[0] {
			t.Fatal("another root, the same hash")
		}
	})
}

// Texts cut at a token border have the tokens of the whole, and no text has a mark's.
func TestTextTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		tokens := appendText(nil, s)
		if want := (len(s) + tokenBytes - 1) / tokenBytes; len(tokens) != want {
			t.Fatalf("%d tokens of %d bytes", len(tokens), len(s))
		}
		cut := rapid.IntRange(0, len(s)/tokenBytes).Draw(t, "cut") * tokenBytes
		if !slices.Equal(tokens, appendText(appendText(nil, s[:cut]), s[cut:])) {
			t.Fatal("cut at a border, other tokens")
		}
		for _, tok := range tokens {
			if utf8.ValidString(s) && tok >= markRole {
				t.Fatalf("%q has the mark %x", s, tok)
			}
		}
	})
}

func TestWordsAreTokens(t *testing.T) {
	seen := map[string]bool{}
	for i := range 2000 {
		w := word(1, i)
		if s := string(w[:]); !strings.HasPrefix(s, " ") || strings.Trim(s[1:], "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Fatalf("word %q", s)
		} else {
			seen[s] = true
		}
	}
	if len(seen) < 500 {
		t.Errorf("only %d different words", len(seen))
	}
	if word(1, 5) == word(2, 5) && word(1, 6) == word(2, 6) {
		t.Error("words do not follow the seed")
	}
}
