package outlier

import (
	"fmt"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

const (
	paceEvery    = time.Second
	crawlTimes   = 10                     // the pace of its likes
	crawlStep    = 250 * time.Millisecond // between tokens: no reader waits longer
	crawlTime    = 5 * time.Second
	crawlStreams = 4 // fewer may be stopped by their readers
	crawlLikes   = 2
	likelyGaps   = 8 // from which the pace of a like can be told
)

// strides is how fast tokens come from one endpoint.
type strides struct {
	streamed time.Duration // totals when last looked at
	gaps     int64
	step     time.Duration // between the tokens that came last; 0: it cannot be told
	fair     bool          // the pace is good enough to compare others with
	crawl    time.Time     // since when its answers crawl; zero: they do not
}

// look brings the account to the present. A moment without tokens is no news: a slow engine may take
// longer than that for a step.
func (p *strides) look(s *fleet.State) {
	streamed, gaps := s.Streamed-p.streamed, s.Gaps-p.gaps
	p.streamed, p.gaps = s.Streamed, s.Gaps
	switch {
	case s.Streaming == 0:
		p.step = 0
	case gaps > 0:
		p.step = streamed / time.Duration(gaps)
	}
	p.fair = p.step > 0 && gaps >= likelyGaps
}

// pace compares how fast tokens come from endpoints of one kind, and ejects those that crawl.
func (d *Detector) pace(now time.Time, snap *fleet.Snapshot) {
	for i := range snap.States {
		d.accounts[snap.States[i].Slot].strides.look(&snap.States[i])
	}
	for i := range snap.States {
		s := &snap.States[i]
		a := &d.accounts[s.Slot]
		p := &a.strides
		if p.step < crawlStep || s.Streaming < crawlStreams || a.state == Ejected {
			p.crawl = time.Time{}
			continue
		}
		others, ok := d.likes(snap, i)
		switch {
		case !ok || p.step < crawlTimes*others:
			p.crawl = time.Time{}
		case p.crawl.IsZero():
			p.crawl = now
		case now.Sub(p.crawl) >= crawlTime:
			p.crawl = time.Time{}
			d.eject(now, a, Slow, fmt.Sprintf("%d ms between tokens, where its likes take %d ms", p.step.Milliseconds(), others.Milliseconds()))
		}
	}
}

// likes is the mean step time of the other endpoints of the same kind.
func (d *Detector) likes(snap *fleet.Snapshot, i int) (time.Duration, bool) {
	s := &snap.States[i]
	sum, n := time.Duration(0), 0
	for j := range snap.States {
		o := &snap.States[j]
		if p := &d.accounts[o.Slot].strides; j != i && p.fair && o.Model == s.Model && o.GPU == s.GPU && o.TP == s.TP {
			sum += p.step
			n++
		}
	}
	return sum / time.Duration(max(n, 1)), n >= crawlLikes
}
