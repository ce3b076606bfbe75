package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// drainLimit is how long after the last arrival answers are waited for, on the wall clock.
const drainLimit = 5 * time.Minute

// Tally collects outcomes while they come in. The zero value is ready; it is safe for concurrent use.
type Tally struct {
	mu       sync.Mutex
	outcomes []Outcome
}

func (t *Tally) add(o Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes = append(t.outcomes, o)
}

// Outcomes are those so far, in the order in which they came in.
func (t *Tally) Outcomes() []Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.outcomes)
}

// SoFar sums up what has come in during d of traffic.
func (t *Tally) SoFar(slo SLO, d time.Duration) Score {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Sum(t.outcomes, slo, d)
}

// ErrCrowded is the failure of a request that was due while as many as the client may have open were.
var ErrCrowded = errors.New("not sent: too many requests were open")

// Send sends each job when it is due, whatever has become of those before, and waits for all
// answers. Jobs due after the limit, on the wall clock, are left out. It ends early only with ctx; what
// is open then has failed, and what was not yet due is no outcome.
func (c *Client) Send(ctx context.Context, w *Workload, limit time.Duration, t *Tally) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var open atomic.Int64
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range w.Jobs {
		j := &w.Jobs[i]
		at := time.Duration(float64(j.At) / c.Speed)
		if at >= limit {
			break
		}
		due := start.Add(at)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			running.Wait()
			return
		}
		if c.Most > 0 && open.Load() >= int64(c.Most) {
			t.add(Outcome{At: j.At, Err: ErrCrowded})
			continue
		}
		open.Add(1)
		running.Go(func() {
			defer open.Add(-1)
			t.add(c.do(ctx, j, due))
		})
	}
	stop := time.AfterFunc(drainLimit, cancel)
	defer stop.Stop()
	running.Wait()
}
