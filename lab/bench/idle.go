package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Idle is the cost of a service that only watches its engines.
type Idle struct {
	Program   Program
	Endpoints int
	Duration  time.Duration
	Profile   string // file for a CPU profile of the service; empty: none
}

// IdleResult is what [Idle.Run] measured.
type IdleResult struct {
	Endpoints int     `json:"endpoints"`
	CPU       float64 `json:"cpu_ms_per_s"`
	Pages     float64 `json:"pages_per_s"` // metrics pages read
	Resident  float64 `json:"resident_mib"`
}

// Run measures, with engines that are busy so that each is read at every interval.
func (b *Idle) Run(ctx context.Context) (IdleResult, error) {
	engines, err := startEngines(ctx, b.Endpoints, nil)
	if err != nil {
		return IdleResult{}, err
	}
	defer engines.stop()
	c, err := startChild(ctx, b.Program, Settings{Endpoints: engines.list, Policy: "weighted", Scrape: scrapeInterval, Answers: 1, Profile: b.Profile})
	if err != nil {
		return IdleResult{}, err
	}
	r, err := b.measure(ctx, c, engines)
	return r, errors.Join(err, c.stop())
}

func (b *Idle) measure(ctx context.Context, c *child, e *engines) (IdleResult, error) {
	if err := sleep(ctx, b.Duration/warmup); err != nil {
		return IdleResult{}, err
	}
	before, err := c.report()
	if err != nil {
		return IdleResult{}, err
	}
	began, pages := time.Now(), e.pages.Load()
	if err := sleep(ctx, b.Duration); err != nil {
		return IdleResult{}, err
	}
	after, err := c.report()
	if err != nil {
		return IdleResult{}, err
	}
	took := time.Since(began).Seconds()
	r := IdleResult{
		Endpoints: b.Endpoints, CPU: (after.CPU - before.CPU).Seconds() * 1e3 / took,
		Pages: float64(e.pages.Load()-pages) / took, Resident: float64(after.Resident) / (1 << 20),
	}
	if r.Pages == 0 {
		return r, fmt.Errorf("no metrics page was read in %v", b.Duration)
	}
	return r, nil
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
