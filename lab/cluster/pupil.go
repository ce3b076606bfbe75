package cluster

import (
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// pupil is the learner of a router: what it learns is known to the next decision, or so much later
// as the run says.
type pupil struct {
	*predictor.Learner
	handle predictor.Handle
	news   bool
	late   time.Duration
	deaf   bool     // to times
	kept   []lesson // not known yet

	timeless features.Observation // scratch
}

// lesson is what a learner knew at a time.
type lesson struct {
	at     time.Duration
	frozen *predictor.Frozen
}

func newPupil(l *predictor.Learner, snap *fleet.Snapshot, cfg *Config) *pupil {
	for i := range snap.States {
		l.Meet(snap.States[i].Class)
	}
	p := &pupil{Learner: l, late: cfg.LabelDelay, deaf: cfg.Untaught}
	p.handle.Store(p.Freeze())
	return p
}

// publish makes what was learned known, late as that may be.
func (p *pupil) publish(now time.Duration) {
	if p.news {
		p.kept = append(p.kept, lesson{now, p.Freeze()})
		p.news = false
	}
	for len(p.kept) > 0 && now-p.kept[0].at >= p.late {
		p.handle.Store(p.kept[0].frozen)
		p.kept = p.kept[1:]
	}
}

// watch counts tokens, and fits the trees that are due.
func (p *pupil) watch(snap *fleet.Snapshot) {
	if p.deaf {
		return
	}
	p.Watch(snap)
	p.news = true
	for f := p.Due(snap.At); f != nil; f = p.Due(snap.At) {
		f.Run()
		if p.Adopt(f) != nil {
			return // the trees stay as they were
		}
	}
}

// First implements [router.FirstObserver].
func (p *pupil) First(o *features.Observation) {
	if !p.deaf {
		p.Learner.First(o)
		p.news = true
	}
}

// Observe implements [router.Observer].
func (p *pupil) Observe(o *features.Observation) {
	p.news = true
	if !p.deaf {
		p.End(o)
		return
	}
	if o.Cause == fleet.Complete {
		p.timeless = *o
		p.timeless.TTFT, p.timeless.ITL = 0, 0
		p.End(&p.timeless)
	}
}

var (
	_ router.FirstObserver = (*pupil)(nil)
	_ router.Observer      = (*pupil)(nil)
)
