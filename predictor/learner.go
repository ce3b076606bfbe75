package predictor

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor/drift"
)

// Options are what a [Learner] is made of. The zero value will do.
type Options struct {
	// Prior gives the law of a class before anything is learned; nil or false: [GenericLaw].
	Prior func(fleet.Class) (Law, bool)
	// RefitAfter is the least time between two fits of the trees of one class and target. 0: none.
	RefitAfter time.Duration
	// Without switches parts off, to measure what they are worth.
	Without Without
}

// Without names parts of a learner that are switched off.
type Without struct {
	Trees     bool // boosted trees
	Offsets   bool // corrections of endpoints
	Shrinkage bool // doubt about corrections that rest on little or are small
	Steps     bool // step times by counting tokens
	Bands     bool // quantiles that follow the errors
	Drift     bool // alarms
}

// Learner learns from finished requests. It is not safe for concurrent use.
type Learner struct {
	opts    Options
	classes map[fleet.ClassID]*class
	order   []*class // of arrival
	slots   []slot
	frozen  *Frozen

	detector drift.Detector // a fresh one
	gen      uint64
	Counts   Counts
}

// NewLearner returns a learner that knows priors alone.
func NewLearner(o Options) *Learner {
	d, err := drift.New(drift.Params{Slack: alarmSlack, Limit: alarmLimit})
	if err != nil {
		panic(fmt.Sprintf("predictor: constants: %v", err))
	}
	return &Learner{opts: o, classes: map[fleet.ClassID]*class{}, frozen: new(Frozen), detector: d}
}

// Counts tell what became of the labels.
type Counts struct {
	First, Gap, Steps, Censored uint64
	Drifts                      uint64 // alarms of endpoints and classes
	Dropped                     [drops]uint64
}

// Drop says why a label was not learned.
type Drop uint8

// Reasons for which a label is not learned.
const (
	Learned    Drop = iota
	NoVector        // the record has no vector
	OtherModel      // the vector has another schema
	Moved           // served by another endpoint than the one forecast
	Unstreamed      // a whole answer at once tells no first token
	Failed          // error status or no natural end
	NotFinite       // a time or feature that is not finite and positive
	TooShort        // fewer than two tokens have no gap
	drops
)

var dropNames = [drops]string{"learned", "no vector", "other schema", "moved", "not streamed", "failed", "not finite", "too short"}

// String returns the reason in metrics.
func (d Drop) String() string { return dropNames[min(int(d), len(dropNames)-1)] }

// slot is what is learned of one endpoint.
type slot struct {
	instance    uint64
	class       *class
	step, first offset
	context     fading // mean context of a stream
	meter       meter
	watched     [targets]watched
}

// Meet makes the class known, with its prior.
func (l *Learner) Meet(id fleet.ClassID) { l.class(id) }

func (l *Learner) class(id fleet.ClassID) *class {
	if c := l.classes[id]; c != nil {
		return c
	}
	law := GenericLaw()
	var zero fleet.ClassID
	if l.opts.Prior != nil && id != zero {
		if p, ok := l.opts.Prior(id.Value()); ok {
			law = p
		}
	}
	c := newClass(id, law)
	l.share(c)
	l.classes[id] = c
	l.order = append(l.order, c)
	c.dirty = true
	return c
}

// share makes the class expect answers as long as those of the other classes of its model: how long
// an answer gets is a matter of the request, and a difference would look like one of speed.
func (l *Learner) share(c *class) {
	for _, o := range l.order {
		if model(o.id) == model(c.id) {
			c.answer = o.answer
			return
		}
	}
}

func model(id fleet.ClassID) string {
	if id == (fleet.ClassID{}) {
		return ""
	}
	return id.Value().Model
}

func (l *Learner) slot(at *features.Where) *slot {
	i := int(at.Slot)
	if i < 0 || i >= maxSlots || at.Instance == 0 {
		return nil
	}
	for len(l.slots) <= i {
		l.slots = append(l.slots, slot{})
	}
	s := &l.slots[i]
	if s.instance != at.Instance {
		if s.instance > at.Instance {
			return nil // a late word of an endpoint that left
		}
		if s.class != nil {
			s.class.endpoints--
		}
		*s = slot{instance: at.Instance, class: l.class(at.Class)}
		s.class.endpoints++
		s.step.alarm, s.first.alarm = l.detector, l.detector
		for t := range s.watched {
			s.watched[t].Detector = l.detector
		}
		for t := range s.class.alarms {
			s.class.alarms[t].Forget(i)
		}
	}
	return s
}

const maxSlots = 1 << 16

// First learns the TTFT of a request, as soon as its first token has come.
func (l *Learner) First(o *features.Observation) Drop {
	d := l.first(o)
	l.Counts.count(d, &l.Counts.First)
	return d
}

func (n *Counts) count(d Drop, learned *uint64) {
	if d == Learned {
		*learned++
		return
	}
	n.Dropped[d]++
}

// usable tells why a record teaches nothing.
func usable(o *features.Observation) Drop {
	switch {
	case o.Schema == "":
		return NoVector
	case o.Schema != schema:
		return OtherModel
	case o.Endpoint != o.Picked:
		return Moved
	case o.Status >= 400:
		return Failed
	}
	for _, v := range o.X {
		if math.IsInf(float64(v), 0) {
			return NotFinite
		}
	}
	return Learned
}

var schema = features.Schema()

func (l *Learner) first(o *features.Observation) Drop {
	if d := usable(o); d != Learned {
		return d
	}
	y := o.TTFT.Seconds()
	switch {
	case !o.Stream:
		return Unstreamed
	case !(y > 0) || y > maxSeconds:
		return NotFinite
	}
	c := l.class(o.Where.Class)
	s, now := l.slot(&o.Where), o.At.Add(o.TTFT)
	if dir := c.learnFirst(s, &o.X, y, now, &l.opts.Without); s != nil {
		l.hurry(&s.first, dir)
		l.observe(s, &o.Where, TTFT, y, &o.Fore.TTFT, now)
	}
	c.targets[TTFT].learn(&o.X, y, &o.Said[TTFT], &o.Fore.TTFT, &l.opts.Without)
	c.dirty = true
	return Learned
}

// maxSeconds bounds labels: beyond a day it is the clock that is wrong.
const maxSeconds = 86400

// End learns from the end of a request: the mean gap, the length of the answer, what the engine had
// cached. Times of requests that failed or were cancelled are never taken as exact.
func (l *Learner) End(o *features.Observation) Drop {
	d := l.end(o)
	l.Counts.count(d, &l.Counts.Gap)
	return d
}

func (l *Learner) end(o *features.Observation) Drop {
	if d := usable(o); d != Learned {
		return d
	}
	c := l.class(o.Where.Class)
	if o.Cause != fleet.Complete {
		if o.Cause == fleet.ClientGone && o.TTFT == 0 && o.Stream {
			l.censored(c, o)
		}
		return Failed
	}
	c.learnAnswer(o)
	for _, k := range l.order {
		k.dirty = k.dirty || k.answer == c.answer
	}
	y := o.ITL.Seconds()
	switch {
	case o.OutputTokens >= 0 && o.OutputTokens < 2 || y == 0:
		return TooShort
	case !(y > 0) || y > maxSeconds:
		return NotFinite
	}
	s := l.slot(&o.Where)
	c.learnGap(&o.X, y)
	if s != nil {
		l.observe(s, &o.Where, ITL, y, &o.Fore.ITL, o.At.Add(o.E2E))
	}
	c.targets[ITL].learn(&o.X, y, &o.Said[ITL], &o.Fore.ITL, &l.opts.Without)
	return Learned
}

// censored learns from a client that left before its first token after longer than was foretold:
// the time it would have taken is estimated from the errors of those that did wait so long (one
// step of expectation maximisation, as for the Tobit model).
func (l *Learner) censored(c *class, o *features.Observation) {
	waited, p50 := o.E2E.Seconds(), float64(o.Fore.TTFT.P50)
	if !(waited > p50) || !(p50 > 0) || waited > maxSeconds {
		return
	}
	t := &c.targets[TTFT]
	ratio, ok := t.bands.Beyond(math.Log(waited / p50))
	if !ok {
		return
	}
	t.regress(&o.X, min(p50*ratio, 2*waited))
	c.dirty = true
	l.Counts.Censored++
}

// Freeze returns a forecaster that knows all that was learned so far. What did not change is shared
// with the one returned before.
func (l *Learner) Freeze() *Frozen {
	l.gen++
	f := &Frozen{Generation: l.gen, classes: make([]*frozenClass, len(l.order)), slots: make([]frozenSlot, len(l.slots))}
	for i, c := range l.order {
		if !c.dirty && i < len(l.frozen.classes) {
			f.classes[i] = l.frozen.classes[i]
			continue
		}
		f.classes[i] = c.freeze(l.slots)
		c.dirty = false
	}
	for i := range l.slots {
		s := &l.slots[i]
		f.slots[i] = frozenSlot{instance: s.instance, scale: s.scale(&l.opts.Without), context: s.context.mean()}
	}
	l.frozen = f
	return f
}

// Fit is one training of trees, to be run anywhere and handed back.
type Fit struct {
	class  *class
	kind   int
	rows   []row
	labels int
	result *target
	err    error
}

// Due returns a training that is due, or nil.
func (l *Learner) Due(now time.Time) *Fit {
	if l.opts.Without.Trees {
		return nil
	}
	for _, c := range l.order {
		for k := range c.targets {
			t := &c.targets[k]
			if t.due() && !now.Before(c.refit[k]) {
				t.fitted = t.labels
				c.refit[k] = now.Add(l.opts.RefitAfter)
				return &Fit{class: c, kind: k, rows: slices.Clone(t.rows), labels: t.labels}
			}
		}
	}
	return nil
}

// Run trains. It needs nothing of the learner and may run in another goroutine.
func (f *Fit) Run() {
	f.result = new(target)
	f.result.trees, f.result.ratio, f.result.high, f.err = fit(f.rows, f.labels)
}

// Adopt takes the trees of a training into use. An error leaves the old ones.
func (l *Learner) Adopt(f *Fit) error {
	if f.err != nil {
		return f.err
	}
	t := &f.class.targets[f.kind]
	t.trees, t.ratio, t.high = f.result.trees, f.result.ratio, f.result.high
	f.class.dirty = true
	return nil
}
