package router

import (
	"testing"

	"github.com/presage-router/presage/features/fleet"
)

// BenchmarkWeighted is a whole decision: snapshot, candidates, scores, explanation, reservation and
// release, without the prefix match.
func BenchmarkWeighted(b *testing.B) {
	for _, n := range []int{8, 100} {
		b.Run(map[int]string{8: "8", 100: "100"}[n], func(b *testing.B) {
			f := pool(b, n, nil)
			var snap fleet.Snapshot
			f.Snapshot(t0, &snap)
			for i, s := range snap.States {
				f.SetLoad(fleet.Ref{Slot: s.Slot, Instance: s.Instance},
					&fleet.Load{At: t0, Known: allKnown, Waiting: int32(i % 7), Running: int32(i), KVUsage: float32(i%10) / 10})
			}
			r := New(Options{Fleet: f, Policy: profile(b, ProfileSpec{Scorers: published})})
			ask, fl := &Ask{Now: t0, Req: prompt(6400)}, &Flight{}
			b.ReportAllocs()
			for b.Loop() {
				fl.Reset()
				if err := r.Route(ask, fl); err != nil {
					b.Fatal(err)
				}
				fl.ticket.Done(t0)
			}
		})
	}
}
