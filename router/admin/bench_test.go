package admin

import (
	"slices"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/router"
)

// BenchmarkDecide is the whole of a decision among 100 endpoints: snapshot, prefix match of 100
// blocks, scores, reservation, index, explanation and metrics. The release after it is not counted.
func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{"weighted", "least-request", "dynamo-linear"} {
		b.Run(name, func(b *testing.B) {
			c := newCounted(b, 100)
			ring := NewRing(RingOptions{})
			r := router.New(router.Options{Fleet: c.router.Fleet(), Policy: policy(b, name), Prefixes: prefix.NewIndex(prefix.Options{}),
				Recorder: router.Recorders{ring, c.m}, Observer: router.Observers{ring, c.m}})
			req := prompt(6400)
			flights := make([]router.Flight, 400)
			var took []time.Duration
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for i := range req.Blocks { // 50 tenants share the first half of their prompts
					req.Blocks[i] = uint64(n%50)<<32 | uint64(i+1)
					if i >= 50 {
						req.Blocks[i] += uint64(n) << 40
					}
				}
				fl := &flights[n%len(flights)]
				fl.Finish(t0, &router.Outcome{Cause: fleet.Complete, Usage: router.Usage{Cached: -1, Output: -1}})
				fl.Reset()
				start := time.Now()
				if err := r.Route(&router.Ask{Now: t0, Req: req}, fl); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				n++
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
		})
	}
}
