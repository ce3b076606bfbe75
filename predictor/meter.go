package predictor

import (
	"math"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor/ridge"
)

// meter measures the step time of one endpoint by counting tokens: over a window, the time between
// tokens divided by their number is the mean gap, whoever's tokens they were. Every gap of every
// answer is in it, at a cost that does not grow with them.
type meter struct {
	at        time.Time
	streamed  time.Duration
	gaps      int64
	prefilled int64
	context   int64
	streams   int32
}

const (
	minWindow = 100 * time.Millisecond
	maxWindow = 5 * time.Second
	minGaps   = 8
)

// window is what a meter read.
type window struct {
	gap     float64 // mean gap in seconds
	streams float64 // mean number of streams
	context float64 // mean context
	chunk   float64 // prefill tokens per step
}

// read closes the window when it is long enough.
func (m *meter) read(s *fleet.State, now time.Time) (w window, ok bool) {
	next := meter{
		at: now, streamed: s.Streamed, gaps: s.Gaps, prefilled: s.Prefilled,
		context: s.Context, streams: s.Streaming,
	}
	d := now.Sub(m.at)
	if m.at.IsZero() || d > maxWindow || d < 0 {
		*m = next
		return w, false
	}
	tokens := s.Gaps - m.gaps
	if d < minWindow || tokens < minGaps {
		return w, false
	}
	w = window{
		gap:     (s.Streamed - m.streamed).Seconds() / float64(tokens),
		streams: float64(m.streams+s.Streaming) / 2,
		context: float64(m.context+s.Context) / 2,
	}
	w.chunk = float64(s.Prefilled-m.prefilled) * w.gap / d.Seconds()
	*m = next
	return w, w.gap > 0
}

// Watch learns step times from the tokens that came since it was called before; it is to be called
// several times a second.
func (l *Learner) Watch(snap *fleet.Snapshot) {
	for i := range snap.States {
		st := &snap.States[i]
		at := features.Where{Class: st.Class, Slot: int32(st.Slot), Instance: st.Instance}
		s := l.slot(&at)
		if s == nil {
			continue
		}
		if stepIdle, firstIdle := s.step.idle(snap.At), s.first.idle(snap.At); stepIdle || firstIdle {
			s.class.dirty = true
		}
		if l.opts.Without.Steps {
			continue
		}
		w, ok := s.meter.read(st, snap.At)
		if !ok || !(w.gap < maxSeconds) {
			continue
		}
		c := s.class
		ph, factor := c.phi.Theta(), s.scale(&l.opts.Without).step
		row := [4]float64{1, max(w.streams, 1), w.context / 1e3, w.chunk / 1e3}
		said := factor * ridge.Dot(row[:], ph)
		if !(said > 0) {
			said = factor * max(ph[0], minPhi0)
		}
		said *= c.reach[ITL].scale(c.phi, math.Log(w.gap/said))
		c.phi.Learn(row[:], w.gap/factor)
		l.hurry(&s.step, s.step.learn(math.Log(w.gap/said), stepGain, 5, snap.At))
		each := w.context / max(w.streams, 1)
		s.context.add(each, contextKeep)
		c.context.add(each, contextKeep)
		c.steps++
		c.dirty = true
		l.Counts.Steps++
	}
}
