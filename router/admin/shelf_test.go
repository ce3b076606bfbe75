package admin

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/router"
)

// TestShelfNeverMixesDecisions adds decisions of any size to a small shelf and checks after each that
// those still there are the newest, without a gap, and that no word of theirs was overwritten.
func TestShelfNeverMixesDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShelf(rapid.IntRange(1, 12).Draw(t, "heads"), rapid.IntRange(1, 200).Draw(t, "words"))
		added := 0
		for range rapid.IntRange(1, 60).Draw(t, "decisions") {
			rows := rapid.IntRange(0, 12).Draw(t, "rows")
			h, words := s.add(rows * fixedWords)
			if h == nil {
				if rows*fixedWords <= len(s.words) {
					t.Fatalf("no room for %d words in %d", rows*fixedWords, len(s.words))
				}
				continue
			}
			added++
			off := h.off
			*h = head{tokens: added, rows: rows, off: off}
			for i := range words {
				words[i] = uint32(added)
			}
			if s.count == 0 || s.newest().tokens != added {
				t.Fatalf("decision %d is not the newest of %d", added, s.count)
			}
			for i := range s.count {
				h := s.at(i)
				if want := added - s.count + 1 + i; h.tokens != want {
					t.Fatalf("place %d holds decision %d, want %d", i, h.tokens, want)
				}
				for r := range h.rows {
					for _, w := range s.row(h, r) {
						if int(w) != h.tokens {
							t.Fatalf("a word of decision %d is of %d", h.tokens, w)
						}
					}
				}
			}
		}
	})
}

func TestShelfFindsInOrder(t *testing.T) {
	s := newShelf(5, 5)
	var ids []router.ID
	for _, text := range []string{"d-1-1", "d-1-2", "d-1-4", "d-1-7", "d-1-8", "d-1-9", "d-1-b"} { // with gaps
		id, ok := router.ParseID(text)
		if !ok {
			t.Fatal(text)
		}
		h, _ := s.add(0)
		*h = head{id: id, off: h.off}
		ids = append(ids, id)
	}
	for i, id := range ids {
		found := s.inOrder(id)
		if (found != nil) != (i >= 2) || found != nil && found.id != id || found != s.anywhere(id) {
			t.Errorf("%s: %v", id, found)
		}
	}
	for _, text := range []string{"d-1-3", "d-1-a", "d-1-z", "d-2-8"} {
		if id, _ := router.ParseID(text); s.inOrder(id) != nil || s.anywhere(id) != nil {
			t.Errorf("%s was found", text)
		}
	}
}
