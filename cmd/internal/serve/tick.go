package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
)

// tick has the policy follow the fleet at the cadence of scrapes, if it wants to, until ctx is done.
func (s *Service) tick(ctx context.Context) {
	ticker := time.NewTimer(s.scraper.Interval)
	defer ticker.Stop()
	var snap fleet.Snapshot
	var told toldChanges
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			p := s.router.Policy()
			next := idleEvery
			if t, ok := p.(router.Ticker); ok {
				s.fleet.Snapshot(now, &snap)
				t.Tick(now, &snap)
				next = s.scraper.Interval
			}
			ticker.Reset(next)
			if a := adaptive.Of(p); a != nil {
				told.tell(s.log, a)
			}
		}
	}
}

// idleEvery is how often it is asked whether there is anything to do, where there was nothing: waking an
// idle machine costs more than what is done then.
const idleEvery = time.Second

// toldChanges is how much of an adaptive policy's log was written out.
type toldChanges struct {
	policy *adaptive.Policy
	seq    uint64
	list   []adaptive.Change
}

// tell logs every change of the weights since the last call: one line each, with what the detectors
// saw and the weights that moved.
func (c *toldChanges) tell(log *slog.Logger, p *adaptive.Policy) {
	if c.policy != p {
		c.policy, c.seq = p, 0
	}
	c.list = p.Changes(c.seq, c.list[:0])
	if len(c.list) == 0 {
		return
	}
	status := p.Status()
	for i := range c.list {
		ch := &c.list[i]
		if lost := ch.Seq - c.seq - 1; lost > 0 {
			log.Warn("changes of the adaptive weights were too many to log", "lost", lost)
		}
		c.seq = ch.Seq
		var saw, was, is []any
		for j, d := range status.Detectors {
			saw = append(saw, slog.Float64(d.Detector, ch.Values[j]))
		}
		for j, w := range status.Weights {
			was = append(was, slog.Float64(w.Scorer, ch.Old[j]))
			is = append(is, slog.Float64(w.Scorer, ch.New[j]))
		}
		log.Info("adaptive weights changed", "reason", ch.String(), "regime", ch.To.String(), "change", ch.Seq, "decided", ch.At,
			slog.Group("detectors", saw...), slog.Group("old", was...), slog.Group("new", is...))
	}
}

// follows tells the metrics about a policy that came into force.
func (s *Service) follows(p router.Policy) {
	s.metrics.Policy(p.Name())
	s.metrics.Composed(p)
	s.metrics.Adaptive(adaptive.Of(p))
}
