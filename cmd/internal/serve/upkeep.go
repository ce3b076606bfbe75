package serve

import (
	"context"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
)

const (
	upkeepEvery = time.Second
	// sweepAfter is the age at which a ticket is released whatever its stream says: beyond what the
	// streams' own limit allows, so that it only ever finds leaks.
	sweepAfter = 2 * time.Hour
)

// upkeep does what depends on the passing of time alone, and follows the configuration file, until ctx
// is done.
func (s *Service) upkeep(ctx context.Context) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.keepUp(now)
			if s.file != nil && s.file.changed() {
				_ = s.Reload() // reported where it is counted
			}
		}
	}
}

func (s *Service) keepUp(now time.Time) {
	s.fleet.Snapshot(now, &s.snap)
	s.sizeCaches()
	s.seeRestarts()
	if n := s.fleet.Expire(now, now.Add(-sweepAfter)); n > 0 {
		s.log.Warn("requests without an end were released", "requests", n, "older_than", sweepAfter)
	}
}

// sizeCaches tells the prefix index how many blocks each engine has room for. Engines say how many
// tokens; the learned length of a token turns these into blocks of text.
func (s *Service) sizeCaches() {
	const sample = 1 << 20 // bytes
	for i := range s.snap.States {
		st := &s.snap.States[i]
		tokens := st.KVTokens()
		if tokens == 0 {
			continue
		}
		perToken := float64(sample) / float64(s.ratios.Estimate(st.Model, sample))
		ref := fleet.Ref{Slot: st.Slot, Instance: st.Instance, Endpoint: st.Endpoint}
		s.index.SetCapacity(ref, int(float64(tokens)*perToken/prefix.DefaultBlock))
	}
}

// seeRestarts has the prefix index forget what engines held that have started anew since the last time.
func (s *Service) seeRestarts() {
	for i := range s.snap.States {
		st := &s.snap.States[i]
		for st.Slot >= len(s.restarts) {
			s.restarts = append(s.restarts, restarts{})
		}
		seen := &s.restarts[st.Slot]
		if seen.instance == st.Instance && seen.n < st.Restarts {
			s.index.Restart(fleet.Ref{Slot: st.Slot, Instance: st.Instance, Endpoint: st.Endpoint})
		}
		*seen = restarts{instance: st.Instance, n: st.Restarts}
	}
}

// restarts is how often the engine of an instance was seen to start anew.
type restarts struct {
	instance uint64
	n        uint32
}
