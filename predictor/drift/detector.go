package drift

import (
	"fmt"
	"math"
	"slices"
)

// Direction is the side to which residuals have shifted.
type Direction int8

// Directions. Slower means that answers take longer than predicted.
const (
	None   Direction = 0
	Slower Direction = 1
	Faster Direction = -1
)

// String returns none, slower or faster.
func (d Direction) String() string {
	switch {
	case d > 0:
		return "slower"
	case d < 0:
		return "faster"
	default:
		return "none"
	}
}

// Params say how sensitive a [Detector] is. The zero value of a field means its default.
type Params struct {
	Slack float64 // k: shift that is tolerated, in standard deviations; default 0.25
	Limit float64 // h: evidence that raises an alarm, in standard deviations; default 16
	Clip  float64 // largest residual that counts as such, in standard deviations; more than Slack; default 3
	Rest  int     // observations after an alarm that bring no evidence, while forecasts adapt; default 20, negative: none
	Sigma float64 // standard deviation of the log residuals; default: learned from them
}

func (p Params) withDefaults() Params {
	if p.Slack == 0 {
		p.Slack = 0.25
	}
	if p.Limit == 0 {
		p.Limit = 16
	}
	if p.Clip == 0 {
		p.Clip = 3
	}
	if p.Rest == 0 {
		p.Rest = 20
	}
	return p
}

func (p Params) check() error {
	finite := func(v float64) bool { return v > 0 && v <= math.MaxFloat32 }
	switch {
	case !finite(p.Slack):
		return fmt.Errorf("slack %v: not positive and finite", p.Slack)
	case !finite(p.Limit):
		return fmt.Errorf("limit %v: not positive and finite", p.Limit)
	case !finite(p.Clip) || p.Clip <= p.Slack:
		return fmt.Errorf("clip %v: not finite and above the slack, %v", p.Clip, p.Slack)
	case p.Sigma != 0 && !(p.Sigma >= leastSigma && p.Sigma <= math.MaxFloat32):
		return fmt.Errorf("sigma %v: not finite and at least %v", p.Sigma, leastSigma)
	}
	return nil
}

const (
	leastSigma = 0.01       // smaller errors are never drift: 1 %
	warmUp     = 64         // observations before the first estimate of the spread
	pace       = 0.01       // relative step of the running median
	normal     = 1.48260222 // standard deviations in a median absolute deviation, of a normal distribution
)

// Detector watches one endpoint. It is a value without pointers: a slice of them indexed by slot is
// all a fleet needs. It is not safe for concurrent use. Make it with [New].
type Detector struct {
	p      Params
	sigma  float64
	slower float64 // evidence for each direction
	faster float64
	rest   int // observations until armed
	seen   int // observations of the spread, up to warmUp
	last   Direction
	warm   [warmUp]float32
}

// New returns an armed detector.
func New(p Params) (Detector, error) {
	p = p.withDefaults()
	if err := p.check(); err != nil {
		return Detector{}, err
	}
	return Detector{p: p, sigma: p.Sigma}, nil
}

// Observe takes the log residual log(actual/predicted) of one answer and returns the direction of the
// alarm that it raises, or None. NaN is ignored. An alarm uses up the evidence; the detector arms
// itself again after Rest observations, so that a shift that stays raises alarms again and again.
func (d *Detector) Observe(residual float64) Direction {
	if math.IsNaN(residual) {
		return None
	}
	if !d.spread(math.Abs(residual)) {
		return None
	}
	if d.rest > 0 {
		d.rest--
		return None
	}
	z := min(max(residual/d.sigma, -d.p.Clip), d.p.Clip)
	d.slower = max(0, d.slower+z-d.p.Slack)
	d.faster = max(0, d.faster-z-d.p.Slack)
	switch {
	case d.slower > d.p.Limit:
		d.raise(Slower)
	case d.faster > d.p.Limit:
		d.raise(Faster)
	default:
		return None
	}
	return d.last
}

func (d *Detector) raise(dir Direction) {
	d.slower, d.faster = 0, 0
	d.rest = max(d.p.Rest, 0)
	d.last = dir
}

// spread updates the standard deviation by the size of one residual, and reports whether there is one:
// the median of the first sizes, then a median that follows in equal relative steps.
func (d *Detector) spread(size float64) bool {
	switch {
	case d.p.Sigma > 0:
		return true
	case d.seen < warmUp:
		d.warm[d.seen] = float32(size)
		d.seen++
		if d.seen < warmUp {
			return false
		}
		slices.Sort(d.warm[:])
		d.sigma = float64(d.warm[warmUp/2-1]+d.warm[warmUp/2]) / 2 * normal
	case size*normal > d.sigma:
		d.sigma *= 1 + pace
	default:
		d.sigma *= 1 - pace
	}
	d.sigma = min(max(d.sigma, leastSigma), math.MaxFloat32)
	return true
}

// Last returns the direction of the last alarm since the detector was made or reset.
func (d *Detector) Last() Direction { return d.last }

// Sigma returns the standard deviation that residuals are divided by, 0 while it is not known.
func (d *Detector) Sigma() float64 { return d.sigma }

// Evidence returns the larger of the two sums as a share of the limit: 1 is an alarm.
func (d *Detector) Evidence() float64 { return max(d.slower, d.faster) / d.p.Limit }

// Rearm drops the evidence and any rest, and keeps the spread: forecasts were replaced.
func (d *Detector) Rearm() { d.slower, d.faster, d.rest = 0, 0, 0 }

// Reset forgets everything: the endpoint is another one.
func (d *Detector) Reset() { *d = Detector{p: d.p, sigma: d.p.Sigma} }
