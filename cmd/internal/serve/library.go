package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/models"
	"github.com/presage-router/presage/predictor"
)

const (
	tendEvery = time.Second
	saveEvery = 5 * time.Minute
)

// library is the registry of models as a service uses it: the champion is what learning begins with,
// and what was learned since outlives the process.
type library struct {
	*models.Registry
	log  *slog.Logger
	from atomic.Pointer[string] // champion that the learner learned on from; empty: none

	restored, refused, saved, unsaved atomic.Uint64

	begun  time.Time
	latest predictor.Counts // of labels in the file, or when the service began
}

// openLibrary opens the registry of a configuration, or returns nil where none is used.
func openLibrary(c *config.Models, log *slog.Logger, now time.Time) (*library, error) {
	if c.Dir == "" {
		return nil, nil
	}
	r, err := models.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("models.dir: %w", err)
	}
	b := &library{Registry: r, log: log, begun: now}
	b.from.Store(new(string))
	return b, nil
}

// begin restores the champion, or what a service had learned on from it before it ended. What cannot
// be used is refused with its reason; the learner then keeps its priors.
func (b *library) begin(l *predictor.Learner, now time.Time) {
	b.Changed(now) // what it is now is no news
	name, champion, state, err := b.champion()
	if err != nil {
		b.refuse(err)
	}
	if b.Has(models.Serving) {
		own, learned, bad := b.Load(models.Serving)
		switch {
		case bad != nil:
			b.refuse(bad)
		case state == nil || own.From == name && !own.Created.Before(champion.Created):
			if b.restore(l, models.Serving, own.From, learned) {
				return
			}
		}
	}
	if state != nil {
		b.restore(l, name, name, state)
	}
}

// champion loads the champion; without one all results are empty.
func (b *library) champion() (string, *models.Manifest, *predictor.State, error) {
	name, err := b.Champion()
	if errors.Is(err, models.ErrNone) {
		return "", nil, nil, nil
	}
	if err != nil {
		return "", nil, nil, err
	}
	m, s, err := b.Load(name)
	return name, m, s, err
}

func (b *library) refuse(err error) {
	b.refused.Add(1)
	b.log.Error("model refused", "error", err)
}

func (b *library) restore(l *predictor.Learner, name, from string, s *predictor.State) bool {
	if err := l.Restore(*s); err != nil {
		b.refuse(fmt.Errorf("model %s: %w", name, err))
		return false
	}
	b.from.Store(&from)
	b.restored.Add(1)
	b.log.Info("model in use", "model", name, "champion", from, "classes", len(s.Classes))
	return true
}

// follow brings a new champion into force. One that cannot be used changes nothing.
func (b *library) follow(ctx context.Context, t *tutor, now time.Time) {
	if !b.Changed(now) {
		return
	}
	name, _, state, err := b.champion()
	if err != nil {
		b.refuse(err)
		return
	}
	t.do(ctx, func(l *predictor.Learner) {
		if b.restore(l, name, name, state) {
			t.meet(now)
			t.show()
		}
	})
}

// save writes what was learned, if anything was since the last time. Whoever calls it has the learner
// to himself, or none.
func (b *library) save(s *predictor.State, counts predictor.Counts, now time.Time) {
	if counts == b.latest {
		return
	}
	m, err := b.Put(models.Manifest{Name: models.Serving, From: *b.from.Load(), Rows: int(counts.First), Since: b.begun, Until: now}, s, now)
	if err != nil {
		b.unsaved.Add(1)
		b.log.Error("what was learned could not be saved", "error", err)
		return
	}
	b.latest = counts
	b.saved.Add(1)
	b.log.Debug("what was learned is saved", "model", m.Name, "champion", m.From)
}

// results counts what became of model files.
func (b *library) results() map[string]uint64 {
	return map[string]uint64{"restored": b.restored.Load(), "refused": b.refused.Load(), "saved": b.saved.Load(), "unsaved": b.unsaved.Load()}
}

// tend looks after what is on disk, until ctx is done.
func (s *Service) tend(ctx context.Context) {
	if s.journal == nil && s.library == nil {
		return
	}
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	due := time.Now().Add(saveEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if s.journal != nil {
				s.journal.tell(s.log, now)
			}
			if s.library == nil {
				continue
			}
			s.library.follow(ctx, s.tutor, now)
			if now.Before(due) {
				continue
			}
			due = now.Add(saveEvery)
			var state predictor.State
			var counts predictor.Counts
			if s.tutor.do(ctx, func(l *predictor.Learner) { state, counts = l.Save(), l.Counts }) {
				s.library.save(&state, counts, now)
			}
		}
	}
}
