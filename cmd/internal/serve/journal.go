package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/datasets/observations/record"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router/admin"
	"github.com/presage-router/presage/training/trace"
)

// journal is the log of finished requests, read while it is written: no other process can open it.
type journal struct {
	*trace.Log

	reading sync.RWMutex // a reader holds it; whoever closes waits
	closed  bool

	told   string // the last problem that was logged
	toldAt time.Time
}

// complainEvery is the least time between two log lines about the journal: some problems change their
// words with every record.
const complainEvery = time.Minute

// openJournal opens the log of a configuration, or returns nil where none is kept.
func openJournal(c *config.Trace) (*journal, error) {
	if c.Dir == "" {
		return nil, nil
	}
	l, err := trace.Open(c.Dir, trace.Options{Keep: c.Keep, Budget: c.Budget})
	if err != nil {
		return nil, fmt.Errorf("trace.dir: %w", err)
	}
	return &journal{Log: l}, nil
}

// rows implements [admin.Rows].
func (j *journal) rows(ctx context.Context, since, until time.Time, each func(time.Time, []byte) error) error {
	j.reading.RLock()
	defer j.reading.RUnlock()
	if j.closed {
		return errors.New("the service ends")
	}
	_ = j.Flush() // what cannot be written is counted, and no reason to withhold the rest
	var line []byte
	_, err := j.Scan(since, until, func(o *features.Observation) (err error) {
		if err = ctx.Err(); err != nil {
			return err
		}
		if line, err = record.Append(line[:0], o); err != nil {
			return err
		}
		return each(o.At, line)
	})
	return err
}

// tell logs a problem of the journal when it is another one.
func (j *journal) tell(log *slog.Logger, now time.Time) {
	s := j.Stats()
	if s.Problem == j.told || now.Sub(j.toldAt) < complainEvery {
		return
	}
	j.told, j.toldAt = s.Problem, now
	log.Warn("trace", "problem", s.Problem, "written", s.Written, "dropped", s.Dropped())
}

// logged tells how the journal fares.
func (j *journal) logged() admin.Logged {
	s := j.Stats()
	return admin.Logged{
		Rows: map[string]uint64{
			"written": s.Written, "queue_full": s.Full, "clock": s.Clock, "invalid": s.Invalid, "no_space": s.NoSpace, "failed": s.Failed,
		},
		Removed: s.Removed, Bytes: s.Bytes, Oldest: s.Oldest,
	}
}

// close writes what waits and closes the log, once nobody reads it any more; the connections of
// readers are to be closed before.
func (j *journal) close(log *slog.Logger) {
	if j == nil {
		return
	}
	j.reading.Lock()
	defer j.reading.Unlock()
	if j.closed {
		return
	}
	j.closed = true
	if err := j.Close(); err != nil {
		log.Error("the trace could not be closed", "error", err)
	}
}
