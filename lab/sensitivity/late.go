package sensitivity

import (
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// late hides every dispatch from the ledger that a policy sees, until so long after it or until its
// first token, whichever is earlier; streams are always seen. It takes the hidden work out of the
// router's view in place, so that the learner is taught with what a router with such a ledger would
// have seen. It is to be the run's recorder and observer too.
type late struct {
	veil
	by   time.Duration
	sent [][]dispatch // by state of the snapshot, oldest first; none that is to be seen for its age
}

// dispatch is one request that may have to be hidden.
type dispatch struct {
	at   time.Time
	work fleet.Work
	seen bool
}

// Route implements [router.Policy].
func (l *late) Route(q *router.Query, d *router.Decision) error {
	for i := range min(len(l.sent), len(q.Snap.States)) {
		s := l.sent[i]
		for len(s) > 0 && q.Snap.At.Sub(s[0].at) >= l.by {
			s = s[1:]
		}
		l.sent[i] = s
		for k := range s {
			if !s[k].seen {
				hide(&q.Snap.States[i].Inflight, &s[k].work)
			}
		}
	}
	return l.Policy.Route(q, d)
}

// hide takes a pending request out of an account. Those that are hidden are the youngest, so the
// oldest stays, or none does.
func hide(in *fleet.Inflight, w *fleet.Work) {
	u := w.Prompt - w.Cached
	in.Requests--
	in.Pending--
	in.PendingTokens -= w.Prompt
	in.Uncached -= u
	in.Attention -= u * (2*w.Cached + u)
	in.Begun--
	in.BegunUncached -= uint64(u)
	if in.Pending == 0 {
		in.OldestPending, in.HeadUncached = time.Time{}, 0
	}
}

// Record implements [router.Recorder].
func (l *late) Record(_ router.ID, q *router.Query, d *router.Decision) {
	for len(l.sent) < len(q.Snap.States) {
		l.sent = append(l.sent, nil)
	}
	l.sent[d.Index] = append(l.sent[d.Index], dispatch{at: q.Now, work: q.Work(d.Index)})
}

// First implements [router.FirstObserver].
func (l *late) First(o *features.Observation) { l.show(o) }

// Observe implements [router.Observer]: what ends without a token is no longer pending either.
func (l *late) Observe(o *features.Observation) {
	l.show(o)
	l.veil.Observe(o)
}

// show finds the dispatch of a request. Two of one instant on one endpoint are told apart by what they
// cost; where that is equal too, so is what is hidden of them.
func (l *late) show(o *features.Observation) {
	for i := range l.sent {
		for k := range l.sent[i] {
			x := &l.sent[i][k]
			if !x.seen && x.at.Equal(o.At) && x.work.Prompt == int64(o.PromptTokens) && x.work.Cached == int64(o.HitTokens) {
				x.seen = true
				return
			}
		}
	}
}

// lateIndex is a prefix index that hears of everything so much later. Its clock is that of the
// decisions.
type lateIndex struct {
	belief
	by    time.Duration
	now   time.Time
	queue []notice
}

// notice is a change of the index that is not known yet.
type notice struct {
	at     time.Time
	change func()
}

// Match implements [router.Prefixes].
func (x *lateIndex) Match(blocks []uint64, snap *fleet.Snapshot, hits []int32) {
	x.now = snap.At
	for len(x.queue) > 0 && x.now.Sub(x.queue[0].at) >= x.by {
		x.queue[0].change()
		x.queue = x.queue[1:]
	}
	x.belief.Match(blocks, snap, hits)
}

// Insert implements [router.Prefixes].
func (x *lateIndex) Insert(r fleet.Ref, blocks []uint64) {
	kept := append([]uint64(nil), blocks...)
	x.later(func() { x.belief.Insert(r, kept) })
}

// Correct implements [router.Prefixes].
func (x *lateIndex) Correct(r fleet.Ref, blocks []uint64, held, claimed int) {
	kept := append([]uint64(nil), blocks...)
	x.later(func() { x.belief.Correct(r, kept, held, claimed) })
}

// Withdraw implements [router.Prefixes].
func (x *lateIndex) Withdraw(r fleet.Ref, blocks []uint64, held int) {
	kept := append([]uint64(nil), blocks...)
	x.later(func() { x.belief.Withdraw(r, kept, held) })
}

func (x *lateIndex) later(change func()) { x.queue = append(x.queue, notice{x.now, change}) }

var (
	_ router.Policy        = (*late)(nil)
	_ router.Recorder      = (*late)(nil)
	_ router.FirstObserver = (*late)(nil)
	_ router.Prefixes      = (*lateIndex)(nil)
)
