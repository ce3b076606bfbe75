package experiment

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// Arm is one of the policies compared. Name is what decisions and observations carry.
type Arm struct {
	Name   string
	Share  float64       // of requests, sessions or blocks; the shares of all arms add up to 1
	Policy router.Policy // serves this arm alone
}

// Unit is what is assigned to an arm as a whole.
type Unit uint8

// The units of an experiment; see the package comment.
const (
	ByRequest Unit = iota
	BySession
	ByBlock
)

// Units are the names of units in a configuration, as [Unit] numbers them.
func Units() []string { return []string{"request", "session", "block"} }

// String returns the unit's name in a configuration.
func (u Unit) String() string { return Units()[u] }

// HeldBack is the arm of decisions that the control takes in blocks held back.
const HeldBack = "held-back"

// Lengths of blocks where none is given.
const (
	DefaultLength  = 5 * time.Minute
	DefaultWashout = 30 * time.Second
)

// Options describe an experiment.
type Options struct {
	Arms       []Arm
	Control    string // name of an arm; empty: the first
	Unit       Unit
	Length     time.Duration // of a block; 0: DefaultLength
	Washout    time.Duration // at the start of a block; 0: none
	HoldBack   float64       // share of blocks in which the control decides everything, at most 1/2
	Seed       uint64        // of the assignment
	Guardrails []Guardrail
	Tripped    func(Trip) // told once, from the goroutine of the observation; must not block. Nil: nobody is
}

// Experiment is a policy that has each request decided by the policy of its arm. [New] makes it.
type Experiment struct {
	opts    Options
	control int
	bounds  []float64 // cumulative shares
	days    *calendar // of the arms, by block
	held    *calendar // of blocks held back; nil: none are

	number    uint64 // of the request; touched by Route alone
	decisions []atomic.Uint64
	trip      atomic.Pointer[Trip]

	mu     sync.Mutex // guards what follows
	ledger []Ledger   // by arm; the last: held back
	watch  []watch    // by arm; the control's is unused
}

// Ledger counts what became of the requests of an arm.
type Ledger struct {
	Ended  uint64 // as judged: clients that left before they had to wait too long are left out
	Failed uint64
	SLO    uint64 // that carried an SLO
	Met    uint64 // of these, that met it
}

// New makes an experiment. Errors name the option and the value that are wrong.
func New(o Options) (*Experiment, error) {
	if o.Length == 0 {
		o.Length = DefaultLength
	}
	e := &Experiment{opts: o, control: -1}
	if o.Control == "" && len(o.Arms) > 0 {
		o.Control = o.Arms[0].Name
	}
	sum := 0.
	shares := make([]float64, len(o.Arms))
	for i := range o.Arms {
		a := &o.Arms[i]
		switch {
		case a.Name == "" || a.Name == HeldBack || a.Policy == nil:
			return nil, fmt.Errorf("arms: arm %d: no usable name, or no policy", i)
		case !(a.Share >= 0 && a.Share <= 1):
			return nil, fmt.Errorf("arms.%s: a share of %v: not within 0 and 1", a.Name, a.Share)
		case a.Share == 0 && (a.Name != o.Control || o.HoldBack == 0):
			return nil, fmt.Errorf("arms.%s: a share of 0 is for a control that only gets blocks held back", a.Name)
		}
		for j := range i {
			if o.Arms[j].Name == a.Name {
				return nil, fmt.Errorf("arms.%s: given twice", a.Name)
			}
		}
		if a.Name == o.Control {
			e.control = i
		}
		shares[i] = a.Share
		sum += a.Share
		e.bounds = append(e.bounds, sum)
	}
	if err := e.check(sum); err != nil {
		return nil, err
	}
	var err error
	if o.Unit == ByBlock {
		if e.days, err = newCalendar(shares, o.Seed); err != nil {
			return nil, fmt.Errorf("arms: %w", err)
		}
	}
	if o.HoldBack > 0 {
		if e.held, err = newCalendar([]float64{1 - o.HoldBack, o.HoldBack}, mix(o.Seed^holdSalt)); err != nil {
			return nil, fmt.Errorf("hold_back: %w", err)
		}
	}
	e.decisions = make([]atomic.Uint64, len(o.Arms)+1)
	e.ledger = make([]Ledger, len(o.Arms)+1)
	e.watch = make([]watch, len(o.Arms))
	tests := critical()
	for i := range e.watch {
		e.watch[i].start(o.Guardrails, e.cellTime(), tests)
	}
	return e, nil
}

// check looks at what has to do with each other.
func (e *Experiment) check(sum float64) error {
	o := &e.opts
	switch {
	case len(o.Arms) < 2:
		return fmt.Errorf("arms: %d: an experiment compares at least two", len(o.Arms))
	case sum < 1-shareError || sum > 1+shareError:
		return fmt.Errorf("arms: shares add up to %.4g, not to 1", sum)
	case e.control < 0:
		return fmt.Errorf("control: %q is no arm", o.Control)
	case o.Unit > ByBlock:
		return fmt.Errorf("unit: %d unknown", o.Unit)
	case o.Length < time.Second:
		return fmt.Errorf("length: %s: a block of less than 1s", o.Length)
	case o.Washout < 0 || o.Washout >= o.Length:
		return fmt.Errorf("washout: %s: not within 0s and the length of a block, %s", o.Washout, o.Length)
	case !(o.HoldBack >= 0 && o.HoldBack <= 0.5):
		return fmt.Errorf("hold_back: %v: not within 0 and 0.5", o.HoldBack)
	}
	for _, g := range o.Guardrails {
		if err := g.check(); err != nil {
			return fmt.Errorf("guardrails.%s: %w", g.Metric, err)
		}
	}
	return nil
}

// shareError is how far shares may be from adding up to 1: what decimal fractions lose.
const shareError = 1e-6

// cellTime is the least time over which requests are summed before they are compared.
func (e *Experiment) cellTime() time.Duration {
	if e.days != nil {
		return time.Duration(len(e.days.order)) * e.opts.Length
	}
	return leastCell
}

// Name implements [router.Policy].
func (*Experiment) Name() string { return "experiment" }

// Route implements [router.Policy]. The decision's policy is the arm's, its propensity that of the
// arm's policy given the arm. Within a washout the arm stays empty.
func (e *Experiment) Route(q *router.Query, d *router.Decision) error {
	arm, as := e.assign(q)
	e.decisions[as].Add(1)
	p := e.opts.Arms[arm].Policy
	d.Policy = p.Name()
	d.Arm = e.label(as, q.Now)
	return p.Route(q, d)
}

// Observe implements [router.Observer]: it keeps the ledger and the guardrails, and passes the
// record on to the arms' policies.
func (e *Experiment) Observe(o *features.Observation) {
	for i := range e.opts.Arms {
		if x, ok := e.opts.Arms[i].Policy.(router.Observer); ok {
			x.Observe(o)
		}
	}
	as := e.armOf(o.Arm)
	if as < 0 {
		return
	}
	r, ok := ResultOf(o)
	if !ok {
		return
	}
	e.mu.Lock()
	e.ledger[as].add(&r)
	t := e.judge(as, &r)
	e.mu.Unlock()
	if t != nil && e.trip.CompareAndSwap(nil, t) && e.opts.Tripped != nil {
		e.opts.Tripped(*t)
	}
}

// judge gives a result to the guardrails and returns the trip that follows, if one does.
func (e *Experiment) judge(as int, r *Result) *Trip {
	if as == len(e.opts.Arms) || e.trip.Load() != nil {
		return nil
	}
	for i := range e.watch {
		if i == e.control || as != i && as != e.control {
			continue
		}
		if t := e.watch[i].add(r, as == e.control); t != nil {
			t.Arm, t.Control = e.opts.Arms[i].Name, e.opts.Arms[e.control].Name
			return t
		}
	}
	return nil
}

func (e *Experiment) armOf(name string) int {
	if name == "" {
		return -1
	}
	for i := range e.opts.Arms {
		if e.opts.Arms[i].Name == name {
			return i
		}
	}
	if name == HeldBack {
		return len(e.opts.Arms)
	}
	return -1
}

// Tick implements [router.Ticker] for the arms' policies.
func (e *Experiment) Tick(now time.Time, s *fleet.Snapshot) {
	for i := range e.opts.Arms {
		if t, ok := e.opts.Arms[i].Policy.(router.Ticker); ok {
			t.Tick(now, s)
		}
	}
}

func (l *Ledger) add(r *Result) {
	l.Ended++
	if r.Failed {
		l.Failed++
	}
	if r.SLO {
		l.SLO++
		if r.Met {
			l.Met++
		}
	}
}

var (
	_ router.Policy   = (*Experiment)(nil)
	_ router.Observer = (*Experiment)(nil)
	_ router.Ticker   = (*Experiment)(nil)
)
