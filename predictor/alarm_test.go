package predictor

import (
	"math"
	"testing"
	"time"
	"unique"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// pool is a learner with some equal endpoints, of which each takes factor times as long as the world
// says.
type pool struct {
	*world
	*Learner
	factor []float64
	now    time.Time
}

func newPool(o Options, n int) *pool {
	p := &pool{world: newWorld(7), Learner: NewLearner(o), now: time.Unix(1e9, 0)}
	for range n {
		p.factor = append(p.factor, 1)
	}
	return p
}

func (p *pool) where(i int) features.Where {
	return features.Where{Class: p.world.class, Slot: int32(i), Instance: uint64(i + 1)}
}

// serve has each endpoint serve n requests, two a second, and returns the mean size of the log error
// of TTFT over the last half of them.
func (p *pool) serve(n int) float64 {
	var sum, count float64
	for k := range n {
		p.now = p.now.Add(500 * time.Millisecond)
		for i, f := range p.factor {
			o := p.next()
			o.At, o.Where = p.now, p.where(i)
			o.TTFT = time.Duration(float64(o.TTFT) * f)
			o.Said = p.Freeze().Judge(&o.X, &o.Where, &o.Fore)
			if k >= n/2 {
				sum += math.Abs(math.Log(float64(o.Fore.TTFT.P50) / o.TTFT.Seconds()))
				count++
			}
			p.First(o)
			p.End(o)
		}
	}
	return sum / count
}

func TestNoAlarmWhereNothingChanges(t *testing.T) {
	p := newPool(Options{Without: Without{Trees: true}}, 4)
	p.serve(1500)
	if n := p.Report().Counts.Drifts; n > 1 {
		t.Errorf("%d alarms in 6,000 requests of engines that stay as they are", n)
	}
}

// TestChangeOfAClassIsLearnedFast: when all endpoints take half as long again, errors are back sooner
// than without detectors, and the report tells.
func TestChangeOfAClassIsLearnedFast(t *testing.T) {
	var errors [2]float64
	for k, without := range []Without{{Trees: true}, {Trees: true, Drift: true}} {
		p := newPool(Options{Without: without}, 4)
		old := p.serve(500)
		for i := range p.factor {
			p.factor[i] = 1.6
		}
		errors[k] = p.serve(40) / old // labels 81 to 160 of the class
		r := p.Report()
		if got, want := r.Classes[0].Drifts > 0, !without.Drift; got != want {
			t.Errorf("without %+v: %d changes of the class reported", without, r.Classes[0].Drifts)
		}
		if got := r.Classes[0].Targets[TTFT].Drifting; got != (k == 0) {
			t.Errorf("without %+v: drifting %v", without, got)
		}
		if k == 0 {
			if ratio := p.serve(100) / old; ratio > 1.5 {
				t.Errorf("%.2f of the old error after 500 labels", ratio)
			}
			if p.Report().Classes[0].Targets[TTFT].Drifting {
				t.Error("still drifting after 500 labels")
			}
		}
	}
	if errors[0] > 0.7*errors[1] {
		t.Errorf("error after the change %.2f of the old with detectors, %.2f without", errors[0], errors[1])
	}
}

// TestSlowEndpointIsNotAChangeOfItsClass: one of four slows down. Its own forecast follows, those of
// the others stay.
func TestSlowEndpointIsNotAChangeOfItsClass(t *testing.T) {
	p := newPool(Options{Without: Without{Trees: true}}, 4)
	p.serve(300)
	p.factor[2] = 3
	p.serve(60)
	r := p.Report()
	if r.Classes[0].Drifts != 0 || r.Counts.Drifts == 0 {
		t.Errorf("%d changes of the class, %d alarms", r.Classes[0].Drifts, r.Counts.Drifts)
	}
	slow, other := p.slots[2].first.factor(&Without{}, false), p.slots[0].first.factor(&Without{}, false)
	if slow/other < 2.2 || slow/other > 3.5 || other < 0.75 || other > 1.1 {
		t.Errorf("the slow endpoint is corrected by %.2f, another by %.2f: not thrice as much", slow, other)
	}
}

// TestSlowEndpointIsTriedAgain: an endpoint believed slow of which nothing is heard is believed less
// slow by half every half minute, after ten seconds; one believed fast stays so, and so does one in
// use. What it then does is learned at once.
func TestSlowEndpointIsTriedAgain(t *testing.T) {
	p := newPool(Options{Without: Without{Trees: true}}, 3)
	p.factor = []float64{3, 1, 1. / 3}
	p.serve(300)
	slow, fast := p.slots[0].first.log, p.slots[2].first.log
	if slow < 0.4 || fast > -0.4 {
		t.Fatalf("corrections %.2f and %.2f before", slow, fast)
	}
	snap := fleet.Snapshot{States: make([]fleet.State, 3)}
	load := new(fleet.Load)
	for i := range snap.States {
		at := p.where(i)
		snap.States[i] = fleet.State{Endpoint: &fleet.Endpoint{Name: "a", Model: "llama-3.1-8b", GPU: "H100", Engine: "vllm", TP: 1}, Load: load}
		snap.States[i].Slot, snap.States[i].Instance, snap.States[i].Class = i, at.Instance, at.Class
	}
	watch := func(d time.Duration) {
		for end := p.now.Add(d); p.now.Before(end); {
			p.now = p.now.Add(200 * time.Millisecond)
			snap.At = p.now
			p.Watch(&snap)
		}
	}
	watch(9 * time.Second)
	if got := p.slots[0].first.log; got != slow {
		t.Errorf("%.3f after 9 s, not %.3f", got, slow)
	}
	watch(31 * time.Second)
	if got := p.slots[0].first.log; math.Abs(got-slow/2) > 0.02*slow {
		t.Errorf("%.3f half a minute later, not half of %.3f", got, slow)
	}
	if got := p.slots[2].first.log; got != fast {
		t.Errorf("the fast endpoint is corrected by %.3f, not %.3f", got, fast)
	}
	watch(5 * time.Minute)
	if f := p.slots[0].first.factor(&Without{}, false); f > 1.01 {
		t.Errorf("believed slow by %.2f for ever", f)
	}
	p.serve(15)
	if got := p.slots[0].first.log; got < 0.6*slow {
		t.Errorf("%.3f after 15 more slow answers, %.3f before", got, slow)
	}
}

// TestStalledEndpointRisesBeforeAnyLabel: the forecast of an endpoint whose oldest request is overdue
// rises with every second, although nothing was learned since.
func TestStalledEndpointRisesBeforeAnyLabel(t *testing.T) {
	p := newPool(Options{Without: Without{Trees: true}}, 2)
	p.serve(200)
	f := p.Freeze()
	o := p.next()
	o.X[features.Pending], o.X[features.HeadUncached], o.X[features.PendingUncached] = 1, 500, 500
	at := p.where(0)
	var before features.Forecast
	f.Judge(&o.X, &at, &before)
	last := before
	for _, age := range []float32{1, 2, 4, 8} {
		o.X[features.HeadAge], o.X[features.OldestPending] = age, age
		var fore features.Forecast
		f.Judge(&o.X, &at, &fore)
		if fore.Price.First <= last.Price.First {
			t.Errorf("stalled for %v s: %v s, %v s before", age, fore.Price.First, last.Price.First)
		}
		last = fore
	}
	if last.Price.First < before.Price.First+3 {
		t.Errorf("stalled for 8 s: %v s, %v s before it stalled", last.Price.First, before.Price.First)
	}
}

// TestAnswersOfAModelAreOfOneLength: classes that serve one model expect equally long answers, which a
// restored learner does too; those of another model do not.
func TestAnswersOfAModelAreOfOneLength(t *testing.T) {
	l := NewLearner(Options{})
	w := newWorld(1)
	teach(t, w, 100, l)
	other := *w
	other.class = classOf("llama-3.1-8b", "L40S")
	teach(t, &other, 1, l)
	third := *w
	third.class = classOf("qwen3-32b", "H100")
	teach(t, &third, 1, l)
	r := NewLearner(Options{})
	if err := r.Restore(l.Save()); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Learner{l, r} {
		c := x.Report().Classes
		if c[0].Answer != c[1].Answer || c[0].Answer == c[2].Answer {
			t.Errorf("answers of %v, %v and %v tokens", c[0].Answer, c[1].Answer, c[2].Answer)
		}
		teach(t, &other, 20, x)
		if c = x.Report().Classes; c[0].Answer != c[1].Answer {
			t.Errorf("answers of %v and %v tokens", c[0].Answer, c[1].Answer)
		}
	}
}

func classOf(model, gpu string) fleet.ClassID {
	return unique.Make(fleet.Class{Model: model, GPU: gpu, Engine: "vllm", TP: 1})
}
