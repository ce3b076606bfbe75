package demo

import (
	"context"
	"sync"
	"time"
)

// drainLimit is how long after the last arrival answers are waited for, on the wall clock.
const drainLimit = 5 * time.Minute

// tally collects outcomes while they come in.
type tally struct {
	mu       sync.Mutex
	outcomes []Outcome
}

func (t *tally) add(o Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes = append(t.outcomes, o)
}

// soFar sums up what has come in.
func (t *tally) soFar(slo SLO, d time.Duration) Score {
	t.mu.Lock()
	defer t.mu.Unlock()
	return score(t.outcomes, slo, d)
}

// send sends each job when it is due, whatever has become of those before, and waits for all
// answers. It ends early only with ctx; what is open then has failed.
func send(ctx context.Context, c *client, w *Workload, limit time.Duration, t *tally) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var open sync.WaitGroup
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range w.Jobs {
		j := &w.Jobs[i]
		at := time.Duration(float64(j.At) / c.speed)
		if at >= limit {
			break
		}
		due := start.Add(at)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			open.Wait()
			return
		}
		open.Go(func() { t.add(c.do(ctx, j, due)) })
	}
	stop := time.AfterFunc(drainLimit, cancel)
	defer stop.Stop()
	open.Wait()
}
