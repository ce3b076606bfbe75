package prefix

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
)

// TestIndexOracle compares every operation, under churn, with the index by brute force.
func TestIndexOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Total: rapid.IntRange(1, 40).Draw(t, "total"), Default: rapid.IntRange(1, 20).Draw(t, "default")}
		g := grain{fine: rapid.IntRange(1, 8).Draw(t, "fine"), stride: rapid.IntRange(1, 4).Draw(t, "stride")}
		x, want := NewIndex(o), newOracle(o, g)
		x.grain = g
		slots := []int{0, 1, 2, 63, 64, 130}
		instance := map[int]uint64{}
		next := uint64(1)
		for _, s := range slots {
			instance[s], next = next, next+1
		}
		draw := func(t *rapid.T) fleet.Ref {
			s := rapid.SampledFrom(slots).Draw(t, "slot")
			r := ref(s, instance[s])
			if rapid.IntRange(0, 19).Draw(t, "stale") == 0 && r.Instance > 0 {
				r.Instance-- // some other slot's, or one that left
			}
			return r
		}
		chain := func(t *rapid.T) []uint64 {
			return path(rapid.SliceOfN(rapid.IntRange(0, 1), 0, 7).Draw(t, "path")...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				r, c := draw(t), chain(t)
				x.Insert(r, c)
				want.insert(r, c)
			},
			"correct": func(t *rapid.T) {
				r, c := draw(t), chain(t)
				claimed := rapid.IntRange(0, len(c)).Draw(t, "claimed")
				got := rapid.IntRange(0, len(c)).Draw(t, "held")
				if rapid.Bool().Draw(t, "none") {
					got = 0
				}
				x.Correct(r, c, got, claimed)
				want.correct(r, c, got, claimed)
			},
			"serve": func(t *rapid.T) { // as a router does: match, insert, correct
				r := draw(t)
				trail := rapid.SliceOfN(rapid.IntRange(0, 1), 4, 12).Draw(t, "path")
				c := path(trail...)
				claimed := int(match(x, c, r)[0])
				want.tip = nil
				got := rapid.SampledFrom([]int{0, claimed / 2, claimed}).Draw(t, "held")
				x.Insert(r, c)
				want.insert(r, c)
				x.Correct(r, c, got, claimed)
				want.correct(r, c, got, claimed)
				if rapid.Bool().Draw(t, "answer") {
					more := path(append(trail, rapid.SliceOfN(rapid.IntRange(0, 1), 0, 3).Draw(t, "more")...)...)
					x.Insert(r, more)
					want.insert(r, more)
				}
			},
			"withdraw": func(t *rapid.T) {
				r, c := draw(t), chain(t)
				got := rapid.IntRange(0, len(c)).Draw(t, "held")
				x.Withdraw(r, c, got)
				want.withdraw(r, c, got)
			},
			"capacity": func(t *rapid.T) {
				r, n := draw(t), rapid.IntRange(-1, 20).Draw(t, "n")
				x.SetCapacity(r, n)
				want.resize(r, n)
			},
			"restart": func(t *rapid.T) {
				r := draw(t)
				x.Restart(r)
				want.restart(r)
			},
			"leave": func(t *rapid.T) {
				r := draw(t)
				x.Remove(r)
				want.remove(r)
				if r.Instance == instance[r.Slot] {
					instance[r.Slot], next = next, next+1
				}
			},
			"": func(t *rapid.T) {
				if err := x.consistent(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.summary(), x.Stats()); diff != "" {
					t.Fatalf("stats (-want +got):\n%s", diff)
				}
				var refs []fleet.Ref
				for _, s := range slots {
					refs = append(refs, ref(s, instance[s]))
				}
				refs[2].Instance-- // a snapshot may show what has left
				c := chain(t)
				snap := snapshot(refs...)
				hits := make([]int32, len(refs))
				x.Match(c, snap, hits)
				for i := range refs {
					if w := want.match(c, &snap.States[i]); w != hits[i] {
						t.Fatalf("slot %d: %d hits of %x, want %d", refs[i].Slot, hits[i], c, w)
					}
				}
			},
		})
	})
}

// TestConcurrent runs all methods against each other, for the race detector, with a fleet whose
// endpoints come and go.
func TestConcurrent(t *testing.T) {
	var f fleet.Fleet
	now := time.Unix(1, 0)
	endpoints := func(n int) (es []*fleet.Endpoint) {
		for i := range n {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000)
			es = append(es, &fleet.Endpoint{Name: addr.String(), Addr: addr, TP: 1})
		}
		return es
	}
	if _, err := f.Sync(now, endpoints(8)); err != nil {
		t.Fatal(err)
	}
	x := NewIndex(Options{Total: 500, Default: 100})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			var snap fleet.Snapshot
			var hits []int32
			for i := range 500 {
				f.Snapshot(now, &snap)
				hits = zeroed(hits, len(snap.States))
				chain := run(rng.IntN(20), 1+rng.IntN(20))
				x.Match(chain, &snap, hits)
				k := rng.IntN(len(snap.States))
				s := &snap.States[k]
				r := fleet.Ref{Slot: s.Slot, Instance: s.Instance, Endpoint: s.Endpoint}
				if hits[k] > int32(len(chain)) {
					t.Errorf("%d hits of %d blocks", hits[k], len(chain))
				}
				x.Insert(r, chain)
				switch i % 3 {
				case 0:
					x.Correct(r, chain, rng.IntN(len(chain)+1), int(hits[k]))
				case 1:
					x.Withdraw(r, chain, int(hits[k]))
				}
				x.SetCapacity(r, 50+rng.IntN(50))
				x.Stats()
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			ch, err := f.Sync(now, endpoints(4+i%5))
			if err != nil {
				t.Error(err)
			}
			for _, r := range ch.Removed {
				x.Remove(r)
			}
		}
	})
	wg.Wait()
	if err := x.consistent(); err != nil {
		t.Error(err)
	}
}

// FuzzIndex drives an index with arbitrary operations, chains that are none included: whatever it
// is told, it stays consistent and within its bounds.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 10, 20, 30, 1, 1, 2, 3, 10, 20, 30, 2, 1, 2, 3, 10, 20, 30})
	f.Add([]byte{0, 0, 6, 1, 1, 1, 2, 1, 2, 3, 3, 0, 2, 4, 0, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		x := NewIndex(Options{Total: 12, Default: 7})
		byteAt := func() int {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return int(b)
		}
		for len(in) > 0 {
			what, r := byteAt()%7, ref(byteAt()%130-1, uint64(byteAt()%4))
			chain := make([]uint64, byteAt()%12)
			for i := range chain {
				chain[i] = uint64(byteAt() % 16)
			}
			switch what {
			case 0, 1:
				x.Insert(r, chain)
			case 2:
				x.Correct(r, chain, byteAt()%14-1, byteAt()%14-1)
			case 3:
				x.Withdraw(r, chain, byteAt()%14-1)
			case 4:
				x.SetCapacity(r, byteAt()%14-1)
			case 5:
				x.Remove(r)
			case 6:
				x.Restart(r)
			}
			hits := match(x, chain, r, ref(0, 1))
			for _, h := range hits {
				if h < 0 || int(h) > len(chain) {
					t.Fatalf("%d hits of %d blocks", h, len(chain))
				}
			}
			if err := x.consistent(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
