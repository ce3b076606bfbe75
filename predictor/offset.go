package predictor

import (
	"math"
	"time"

	"github.com/presage-router/presage/predictor/drift"
)

// offset is the logarithm of how much slower one endpoint is than its class says, shrunk towards
// zero while little is known.
type offset struct {
	log  float64
	n    float64
	left fading // residual after correction

	alarm drift.Detector
	haste int       // labels to be learned fast
	at    time.Time // of the last label
	faded time.Time // when idle was called
}

const (
	stepGain   = 0.05
	firstGain  = 0.02
	offsetClip = 0.5
	offsetCap  = 3.0 // e^3 is 20 times slower
	shrink     = 8.0 // observations at which an offset counts half
	pull       = 0.002
	deadZone   = 0.08
	newZone    = 0.2  // that the dead zone is wider at first
	newLabels  = 60.0 // at which half of that is left
)

// learn moves the offset by a residual, the logarithm of actual over foretold: gain max(least,
// 1/(n+slow)), the residual clipped. It returns the alarm that the residual raises.
func (o *offset) learn(residual, least, slow float64, now time.Time) drift.Direction {
	if math.IsNaN(residual) || math.IsInf(residual, 0) {
		return drift.None
	}
	o.at = now
	r := min(max(residual, -offsetClip), offsetClip)
	gain := max(least, 1/(o.n+slow))
	if o.haste > 0 {
		gain = max(gain, hasteGain)
		o.haste--
	}
	o.log = min(max(o.log*(1-pull*gain/least)+gain*r, -offsetCap), offsetCap)
	o.n++
	o.left.add(r, 0.95)
	return o.alarm.Observe(residual)
}

// factor is what the law is multiplied by. Small offsets are not believed: what the law does not
// explain of equal engines under unequal load is a fault of the law, and believing it would send
// the next request to where the law errs most. The fewer labels, the larger a difference that chance
// and a law still being learned make: the labels of one burst are as good as one.
func (o *offset) factor(without *Without, alone bool) float64 {
	if without.Shrinkage {
		return math.Exp(o.log)
	}
	v := o.log * o.n / (o.n + shrink)
	if alone { // nobody to be preferred to
		return math.Exp(v)
	}
	zone := deadZone + newZone/(1+o.n/newLabels)
	return math.Exp(math.Copysign(max(0, math.Abs(v)-zone), v))
}

func (s *slot) scale(without *Without) scale {
	if s == nil || s.class == nil || without.Offsets {
		return unscaled
	}
	alone := s.class.endpoints < 2
	return scale{step: s.step.factor(without, alone), first: s.first.factor(without, alone)}
}
