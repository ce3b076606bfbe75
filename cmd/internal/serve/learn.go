package serve

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/admin"
)

const (
	watchEvery = 100 * time.Millisecond // of step times
	refitAfter = 15 * time.Second       // between two fits of the trees of one class and target
	lessons    = 2048                   // records that may wait to be learned
	atOnce     = 64                     // records learned before what was learned is published
)

// tutor learns from finished requests in a goroutine of its own and publishes what it learned. Its
// Observer methods never block: when records come faster than they are learned, some are dropped and
// counted.
type tutor struct {
	fleet   *fleet.Fleet
	learner *predictor.Learner // of run alone
	handle  predictor.Handle
	queue   chan lesson
	tasks   chan func(*predictor.Learner) // for whom the goroutine that learns makes a break
	snap    fleet.Snapshot
	dropped atomic.Uint64
	seen    atomic.Pointer[predictor.Report]
}

// lesson is a record, taken at its first token or at its end.
type lesson struct {
	first bool
	obs   features.Observation
}

func newTutor(f *fleet.Fleet, o predictor.Options) *tutor {
	o.RefitAfter = refitAfter
	t := &tutor{fleet: f, learner: predictor.NewLearner(o), queue: make(chan lesson, lessons), tasks: make(chan func(*predictor.Learner))}
	t.publish()
	return t
}

// First implements [router.FirstObserver].
func (t *tutor) First(o *features.Observation) { t.give(lesson{first: true, obs: *o}) }

// Observe implements [router.Observer].
func (t *tutor) Observe(o *features.Observation) { t.give(lesson{obs: *o}) }

func (t *tutor) give(l lesson) {
	if l.obs.Schema == "" {
		return
	}
	select {
	case t.queue <- l:
	default:
		t.dropped.Add(1)
	}
}

// do runs f, which has the learner to itself, in the goroutine that learns, and returns when f has;
// false: that goroutine ends, and f was not run.
func (t *tutor) do(ctx context.Context, f func(*predictor.Learner)) bool {
	done := make(chan struct{})
	select {
	case t.tasks <- func(l *predictor.Learner) { defer close(done); f(l) }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

// meet makes the classes of the fleet known, with what is believed of them at first.
func (t *tutor) meet(now time.Time) {
	t.fleet.Snapshot(now, &t.snap)
	for i := range t.snap.States {
		t.learner.Meet(t.snap.States[i].Class)
	}
}

// pause is until step times are watched again: longer while no answer streams.
func (t *tutor) pause() time.Duration {
	for i := range t.snap.States {
		if t.snap.States[i].Requests > 0 {
			return watchEvery
		}
	}
	return idleEvery
}

// run learns until ctx is done, and then what was given before.
func (t *tutor) run(ctx context.Context) {
	ticker := time.NewTimer(watchEvery)
	defer ticker.Stop()
	fitted := make(chan *predictor.Fit, 1)
	fitting := false
	defer func() {
		if fitting {
			<-fitted
		}
	}()
	for {
		select {
		case <-ctx.Done():
			t.learnMore(lessons)
			t.publish()
			return
		case l := <-t.queue:
			t.learn(&l)
			t.learnMore(atOnce)
		case f := <-t.tasks:
			f(t.learner)
		case now := <-ticker.C:
			t.fleet.Presume(now)
			t.meet(now)
			t.learner.Watch(&t.snap)
			ticker.Reset(t.pause())
			if !fitting {
				if f := t.learner.Due(now); f != nil {
					fitting = true
					go func() { f.Run(); fitted <- f }()
				}
			}
		case f := <-fitted:
			fitting = false
			_ = t.learner.Adopt(f) // trees that cannot be fitted leave the old ones
		}
		t.publish()
	}
}

// learnMore learns up to n records that wait.
func (t *tutor) learnMore(n int) {
	for range n {
		select {
		case l := <-t.queue:
			t.learn(&l)
		default:
			return
		}
	}
}

func (t *tutor) learn(l *lesson) {
	if l.first {
		t.learner.First(&l.obs)
	} else {
		t.learner.End(&l.obs)
	}
}

// publish makes what was learned the next decision's forecast.
func (t *tutor) publish() {
	news := t.learner.News()
	if news {
		t.handle.Store(t.learner.Freeze())
	}
	if seen := t.seen.Load(); !news && seen != nil && seen.Counts == t.learner.Counts {
		return
	}
	r := t.learner.Report()
	t.seen.Store(&r)
}

// show publishes all that the learner knows, news or not.
func (t *tutor) show() {
	t.handle.Store(t.learner.Freeze())
	r := t.learner.Report()
	t.seen.Store(&r)
}

// learning tells how learning goes.
func (t *tutor) learning() admin.Learning {
	return admin.Learning{Report: *t.seen.Load(), Overrun: t.dropped.Load()}
}

var (
	_ router.FirstObserver = (*tutor)(nil)
	_ router.Observer      = (*tutor)(nil)
)
