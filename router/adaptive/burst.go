package adaptive

import (
	"math"
	"time"
)

// Burst is the share of what comes, and of what is in flight, that is more than usual: the smaller of
//
//	1 - usual/now
//
// for the arrivals of the last [Burst.Window] and for the requests in flight, where usual is what the
// last [Burst.Memory] would make one expect, three standard deviations of a Poisson count, and one
// request per endpoint. More arrivals that end at once, or slower engines under the same arrivals, are
// no burst. A pool that was busy forgets quickly that it was, so that the next wave counts in full. Nothing
// is usual at the start: a quarter of the memory counts as empty, or else the first wave would be its
// own standard. More would take the start of a steady load for a wave.
type Burst struct {
	Window, Memory time.Duration

	short, long float64       // arrivals, fading by Window and Memory
	age         time.Duration // of the memory, up to some Memories
	base        float64       // usual requests in flight
}

// Name implements [Detector].
func (*Burst) Name() string { return "burst" }

// Detect implements [Detector].
func (b *Burst) Detect(s *Sample) float64 {
	endpoints, flight := 0.0, 0.0
	for i := range s.Snap.States {
		if st := &s.Snap.States[i]; serving(st) {
			endpoints++
			flight += float64(max(st.Requests, 0))
		}
	}
	arrived := float64(s.Arrivals)
	b.long *= 1 - reached(s.Elapsed, b.Memory)
	b.short = b.short*(1-reached(s.Elapsed, b.Window)) + arrived
	usual := 0.0
	if filled := max(float64(b.Memory)*reached(b.age, b.Memory), float64(b.Memory)/4); filled > 0 {
		usual = b.long / filled * float64(b.Window)
	}
	growth := min(excess(b.short, usual, endpoints), excess(flight, b.base, endpoints))
	b.long += arrived
	b.age = min(b.age+s.Elapsed, 64*b.Memory)
	tau := 2 * b.Memory
	if flight < b.base {
		tau = b.Window
	}
	b.base += (flight - b.base) * reached(s.Elapsed, tau)
	if endpoints == 0 {
		return math.NaN()
	}
	return growth
}

// excess is the share of now that is beyond what is usual and what chance adds to it.
func excess(now, usual, endpoints float64) float64 {
	bound := usual + 3*math.Sqrt(usual) + endpoints
	if now <= bound {
		return 0
	}
	return 1 - bound/now
}

var _ Detector = (*Burst)(nil)
