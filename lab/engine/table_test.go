package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTableEqualsMap drives the open-addressing table and a map alike, with keys that collide.
func TestTableEqualsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		m := map[uint64]int32{}
		key := rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Map(rapid.Uint64Range(0, 40), func(k uint64) uint64 { return k << 48 }), rapid.Uint64())
		for range rapid.IntRange(1, 400).Draw(t, "operations") {
			k := key.Draw(t, "key")
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				v := rapid.Int32Range(1, 1000).Draw(t, "value")
				tab.put(k, v)
				m[k] = v
			case 1:
				tab.del(k)
				delete(m, k)
			}
			if tab.get(k) != m[k] || tab.n != len(m) {
				t.Fatalf("table has %d under %x of %d keys, map %d of %d", tab.get(k), k, tab.n, m[k], len(m))
			}
		}
		for k, v := range m {
			if tab.get(k) != v {
				t.Fatalf("table has %d under %x, map %d", tab.get(k), k, v)
			}
		}
	})
}
