package prefix

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/presage-router/presage/features/fleet"
)

// fleetOf is an index and snapshot of n endpoints that all hold the first half of a chain, and some
// of them more.
func fleetOf(n int, chain []uint64) (*Index, *fleet.Snapshot) {
	x := NewIndex(Options{})
	refs := make([]fleet.Ref, n)
	for i := range refs {
		refs[i] = ref(i, uint64(i+1))
		x.Insert(refs[i], chain[:len(chain)/2+i*len(chain)/2/n])
		x.Insert(refs[i], run(i+1000, 500))
	}
	return x, snapshot(refs...)
}

func TestIndexAllocs(t *testing.T) {
	chain := run(0, 64)
	x, snap := fleetOf(100, chain)
	hits := make([]int32, 100)
	e := ref(99, 100)
	x.Insert(e, chain)
	if n := testing.AllocsPerRun(100, func() {
		x.Match(chain, snap, hits)
		x.Insert(e, chain)
		x.Correct(e, chain, 64, 64)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A prompt of 4k tokens is about 64 blocks; of 220 KB, 880.
func BenchmarkMatch(b *testing.B) {
	for _, blocks := range []int{64, 880} {
		b.Run(fmt.Sprintf("endpoints=100/blocks=%d", blocks), func(b *testing.B) {
			chain := run(0, blocks)
			x, snap := fleetOf(100, chain)
			hits := make([]int32, 100)
			b.ReportAllocs()
			for b.Loop() {
				x.Match(chain, snap, hits)
			}
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	const blocks = 900
	b.Run("new", func(b *testing.B) {
		x := NewIndex(Options{Default: 50_000})
		chain := make([]uint64, blocks)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for j := range chain {
				chain[j] = uint64(i*blocks+j) * 0x9e3779b97f4a7c15
			}
			x.Insert(ref(i%4, 1), chain)
		}
	})
	b.Run("again", func(b *testing.B) {
		x := NewIndex(Options{})
		chain := run(0, blocks)
		b.ReportAllocs()
		for b.Loop() {
			x.Insert(ref(0, 1), chain)
		}
	})
}

// BenchmarkMemory reports bytes per block where every block has one holder.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := NewIndex(Options{Total: 1 << 19})
		chain := make([]uint64, 1<<8)
		for i := range 1 << 12 { // twice the total, so that eviction has done its part
			for j := range chain {
				chain[j] = uint64(i<<8+j) * 0x9e3779b97f4a7c15
			}
			x.Insert(ref(i%100, 1), chain)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(x.Stats().Blocks), "B/block")
	}
}
