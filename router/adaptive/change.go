package adaptive

import (
	"strings"
	"time"

	"github.com/presage-router/presage/router"
)

// Change is one change of the weights or of the regime, for the log.
type Change struct {
	Seq      uint64 // 1 for the first of the policy; a gap means that changes in between are not kept
	At       time.Time
	From, To router.Category // regimes; equal where only weights moved
	Old, New []float64       // weights by scorer, in the order of [Status.Weights]; not to be changed
	Cause    string          // the detector whose say moved the most since the last change
	Rose     bool            // it moved towards distribution
	Values   []float64       // smoothed value per detector, in the order of [Status.Detectors]
	Active   []bool          // per detector
}

// Reason says in a few words why the weights changed.
func (c *Change) Reason() string {
	toward := router.Affinity
	if c.Rose {
		toward = router.Distribution
	}
	return c.Cause + " towards " + toward.String()
}

// keptChanges is how many changes are kept for the log's reader to take.
const keptChanges = 64

// changes is a ring of the last changes; entries are written in place, without allocation.
type changes struct {
	ring [keptChanges]Change
	seq  uint64
	push []float64 // of each detector at the last change
}

func (c *changes) init(detectors int) {
	c.push = make([]float64, detectors)
	for i := range c.ring {
		c.ring[i].Values, c.ring[i].Active = make([]float64, detectors), make([]bool, detectors)
	}
}

// pushed is what a detector added to the sum at the last change.
func (c *changes) pushed(i int) float64 { return c.push[i] }

func (c *changes) add(at time.Time, from, to router.Category, old, next *rung, ws []watched, cause int, rose bool) {
	c.seq++
	e := &c.ring[c.seq%keptChanges]
	e.Seq, e.At, e.From, e.To, e.Old, e.New, e.Rose = c.seq, at, from, to, old.weights, next.weights, rose
	e.Cause = ws[cause].Detector.Name()
	for i := range ws {
		e.Values[i], e.Active[i], c.push[i] = ws[i].value, ws[i].active, ws[i].push()
	}
}

// Changes appends to dst those changes after the one numbered since that are still kept, oldest
// first. The last 64 are.
func (p *Policy) Changes(since uint64, dst []Change) []Change {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := max(since, p.log.seq-min(p.log.seq, keptChanges))
	for n := from + 1; n <= p.log.seq; n++ {
		c := p.log.ring[n%keptChanges]
		c.Values = append([]float64(nil), c.Values...)
		c.Active = append([]bool(nil), c.Active...)
		dst = append(dst, c)
	}
	return dst
}

// Reading is a detector now.
type Reading struct {
	Detector string
	Raw      float64 // last value, 0..1
	Value    float64 // smoothed
	Active   bool
	Enter    float64 // smoothed value at which it becomes active
	Exit     float64 // and ceases to be
}

// Weight is the weight of a scorer.
type Weight struct {
	Scorer string
	Value  float64 // above 0; all sum up to 1
}

// Status is the state of a policy at one instant.
type Status struct {
	Regime    router.Category // distribution while a detector that pulls there is active
	Share     float64         // of the weight budget that distribution has
	Weights   []Weight
	Detectors []Reading
	Switches  [2]uint64 // of the regime, by the one they led to
	Changes   uint64    // of weights or regime
	Picks     uint64    // decisions made by scores
	Differing uint64    // of these, those that the static weights would have made otherwise
}

// Status returns the state now.
func (p *Policy) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.now.Load()
	s := Status{
		Regime: p.regime, Share: r.share, Switches: p.switches, Changes: p.log.seq, Picks: p.picks.Load(), Differing: p.changed.Load(),
	}
	for t, part := range p.opts.Scorers {
		s.Weights = append(s.Weights, Weight{part.Scorer.Name(), r.weights[t]})
	}
	for i := range p.watched {
		w := &p.watched[i]
		s.Detectors = append(s.Detectors, Reading{w.Detector.Name(), w.raw, w.value, w.active, w.Enter, w.Exit})
	}
	return s
}

// String is the change in one line: "burst towards distribution: prefix 0.42 -> 0.12, …".
func (c *Change) String() string {
	var b strings.Builder
	b.WriteString(c.Reason())
	if c.From != c.To {
		b.WriteString("; regime " + c.From.String() + " -> " + c.To.String())
	}
	return b.String()
}
