package adaptive

import (
	"math"
	"time"

	"github.com/presage-router/presage/router"
)

// Detector watches one aspect of the pool. Detect is called with samples in order of time, never two
// at once; it may keep state, must not keep s, and must not allocate. It returns 0 for nothing to see
// to 1; NaN says that there are no data, which counts as 0.
type Detector interface {
	Name() string
	Detect(s *Sample) float64
}

// Watch is a detector with what makes its values steady, and its say in the weights.
type Watch struct {
	Detector Detector
	Toward   router.Category // the side that gains weight as the value rises
	Gain     float64         // of the value in the sum that the [Curve] is a function of, above 0

	Up, Down    time.Duration // time constants of smoothing rising and falling values
	Enter, Exit float64       // smoothed values at which it becomes, and ceases to be, active; Exit < Enter
	Dwell       time.Duration // it stays active, once it is, for at least this long
}

// watched is a Watch at work.
type watched struct {
	Watch
	raw    float64 // last value of the detector
	value  float64 // smoothed
	active bool
	since  time.Time // when active last changed
}

// step takes in a value that came elapsed after the last one.
func (w *watched) step(now time.Time, raw float64, elapsed time.Duration) {
	w.raw = unit(raw)
	tau := w.Up
	if w.raw < w.value {
		tau = w.Down
	}
	w.value += (w.raw - w.value) * reached(elapsed, tau)
	switch {
	case !w.active && w.value >= w.Enter:
		w.active, w.since = true, now
	case w.active && w.value <= w.Exit && now.Sub(w.since) >= w.Dwell:
		w.active, w.since = false, now
	}
}

// push is what the value adds to the sum of the curve: positive towards distribution.
func (w *watched) push() float64 {
	switch {
	case !w.active:
		return 0
	case w.Toward == router.Affinity:
		return -w.Gain * w.value
	}
	return w.Gain * w.value
}

// reached is the share of a step that an exponential smoother of time constant tau has made after d.
func reached(d, tau time.Duration) float64 {
	if tau <= 0 {
		return 1
	}
	return -math.Expm1(-float64(max(d, 0)) / float64(tau))
}

// unit bounds a value to [0,1]; what is not a number is 0.
func unit(v float64) float64 {
	if v > 0 {
		return min(v, 1)
	}
	return 0
}
