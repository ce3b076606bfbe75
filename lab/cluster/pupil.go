package cluster

import (
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// pupil is the learner of a run: what it learns is known to the next decision.
type pupil struct {
	*predictor.Learner
	handle predictor.Handle
	news   bool
}

func newPupil(l *predictor.Learner, snap *fleet.Snapshot) *pupil {
	for i := range snap.States {
		l.Meet(snap.States[i].Class)
	}
	return &pupil{Learner: l, news: true}
}

// publish makes what was learned known.
func (p *pupil) publish() {
	if p.news {
		p.handle.Store(p.Freeze())
		p.news = false
	}
}

// watch counts tokens, and fits the trees that are due.
func (p *pupil) watch(snap *fleet.Snapshot) {
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
	p.Learner.First(o)
	p.news = true
}

// Observe implements [router.Observer].
func (p *pupil) Observe(o *features.Observation) {
	p.End(o)
	p.news = true
}

var (
	_ router.FirstObserver = (*pupil)(nil)
	_ router.Observer      = (*pupil)(nil)
)
