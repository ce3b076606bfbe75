package loopback

import (
	"net"
	"testing"
)

// TestFree: the addresses differ and can be listened on at once; ports that are taken are passed over.
func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 5 {
		list, err := Free(t.Context(), 20)
		if err != nil || len(list) != 20 {
			t.Fatalf("%d addresses, %v", len(list), err)
		}
		for _, at := range list {
			l, err := net.Listen("tcp", at)
			if err != nil || seen[at] {
				t.Fatalf("%s: %v, found before: %v", at, err, seen[at])
			}
			seen[at] = true
			defer l.Close()
		}
	}
}

// TestFreeEnds: too many are refused instead of being looked for for ever.
func TestFreeEnds(t *testing.T) {
	if list, err := between(t.Context(), 4, highest+1, highest+3); err == nil {
		t.Errorf("%d addresses", len(list))
	}
}
