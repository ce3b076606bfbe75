package demo

import (
	"math"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// Errors are means over what can be compared, the first third aside.
func TestAccuracy(t *testing.T) {
	var a audit
	see := func(foretold, took time.Duration, change func(o *features.Observation)) {
		p := float32(foretold.Seconds())
		o := features.Observation{
			Stream: true, Cause: fleet.Complete, Endpoint: "a", Picked: "a", TTFT: took, ITL: 10 * time.Millisecond,
			Fore: features.Forecast{TTFT: features.Prediction{P50: p, P90: 1.5 * p, P99: 2 * p}, ITL: features.Prediction{P50: 0.011, P90: 0.012, P99: 0.013}},
		}
		if change != nil {
			change(&o)
		}
		a.Observe(&o)
	}
	if s := accuracy(a.learned()); s.Compared != 0 || !math.IsNaN(s.TTFT) || !math.IsNaN(s.Coverage90) {
		t.Errorf("nothing gives %+v", s)
	}
	see(time.Second, 10*time.Second, nil) // for learning
	see(100*time.Millisecond, 200*time.Millisecond, nil)
	see(100*time.Millisecond, 80*time.Millisecond, func(o *features.Observation) { o.ITL = 0 })
	for _, spoil := range []func(o *features.Observation){
		func(o *features.Observation) { o.Cause = fleet.ClientGone },
		func(o *features.Observation) { o.Endpoint = "b" },
		func(o *features.Observation) { o.Stream = false },
		func(o *features.Observation) { o.Fore = features.Forecast{} },
	} {
		see(time.Second, time.Minute, spoil)
	}
	s := accuracy(a.learned())
	if s.Compared != 2 || math.Abs(s.TTFT-(0.5+0.25)/2) > 1e-6 || math.Abs(s.ITL-0.1) > 1e-6 || math.Abs(s.Coverage90-2.0/3) > 1e-6 {
		t.Errorf("%+v", s)
	}
}
