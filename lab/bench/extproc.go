package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/gateway/driver"
)

// ExtProc is the cost of exchanges over ext_proc.
type ExtProc struct {
	Program     Program
	Endpoints   int
	Body        int // bytes of a request body
	Concurrency int // streams at a time
	Duration    time.Duration
	Policy      string
	Profile     string // file for a CPU profile of the service; empty: none
}

// ExtProcResult is what [ExtProc.Run] measured.
type ExtProcResult struct {
	Body             int     `json:"body"`
	P50              float64 `json:"p50_us"` // from the complete request to the answer
	P99              float64 `json:"p99_us"`
	CPU              float64 `json:"cpu_us_per_request"` // of the service alone
	StreamsPerSecond float64 `json:"streams_per_second"`
	Requests         int     `json:"requests"`
	Resident         float64 `json:"resident_mib"` // largest, of the service
}

// warmup is the part of a run, before its measured part, that fills caches and pools.
const warmup = 5 // as 1/5 of its length

// Run measures. Every exchange must succeed.
func (b *ExtProc) Run(ctx context.Context) (ExtProcResult, error) {
	engines, err := startEngines(ctx, b.Endpoints, nil)
	if err != nil {
		return ExtProcResult{}, err
	}
	defer engines.stop()
	rig, err := b.open(ctx, engines, nil)
	if err != nil {
		return ExtProcResult{}, err
	}
	workers := b.workers()
	if _, _, err = drive(ctx, rig.driver, workers, b.Duration/warmup); err != nil {
		return ExtProcResult{}, errors.Join(err, rig.close())
	}
	r, err := b.measure(ctx, rig, workers)
	return r, errors.Join(err, rig.close())
}

// rig is the service in its process, with a connection to it.
type rig struct {
	child  *child
	driver *driver.Driver
}

func (b *ExtProc) open(ctx context.Context, engines *engines, shadows []string) (*rig, error) {
	c, err := startChild(ctx, b.Program, Settings{
		Endpoints: engines.list, Policy: b.Policy, Shadow: shadows, Scrape: scrapeInterval, Answers: 1, Profile: b.Profile,
	})
	if err != nil {
		return nil, err
	}
	d, err := driver.Dial(c.first.ExtProc)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return &rig{child: c, driver: d}, nil
}

func (r *rig) close() error {
	_ = r.driver.Close()
	if err := r.child.stop(); err != nil {
		return fmt.Errorf("the service failed: %w", err)
	}
	return nil
}

// scrapeInterval is the service's default.
const scrapeInterval = 200 * time.Millisecond

// measure drives a service for the length of a run.
func (b *ExtProc) measure(ctx context.Context, r *rig, workers []*worker) (ExtProcResult, error) {
	before, err := r.child.report()
	if err != nil {
		return ExtProcResult{}, err
	}
	took, decisions, err := drive(ctx, r.driver, workers, b.Duration)
	if err != nil {
		return ExtProcResult{}, err
	}
	after, err := r.child.report()
	if err != nil {
		return ExtProcResult{}, err
	}
	requests := float64(len(decisions))
	q := stat.Quantiles(decisions, .5, .99)
	return ExtProcResult{
		Body: b.Body, P50: q[0] * 1e6, P99: q[1] * 1e6,
		CPU:              (after.CPU - before.CPU).Seconds() * 1e6 / requests,
		StreamsPerSecond: requests / took.Seconds(),
		Requests:         len(decisions), Resident: float64(after.Resident) / (1 << 20),
	}, nil
}

// worker sends one exchange after another.
type worker struct {
	prompts   *prompts
	exchanges []*driver.Exchange
	next      uint64
	step      uint64
	decisions []float64 // seconds
}

// workers prepares what is sent: the same shared beginnings for all.
func (b *ExtProc) workers() []*worker {
	out := make([]*worker, b.Concurrency)
	for i := range out {
		w := &worker{prompts: newPrompts(b.Body, rand.New(rand.NewPCG(1, 2))), next: uint64(i), step: uint64(b.Concurrency)}
		for _, body := range w.prompts.bodies {
			w.exchanges = append(w.exchanges, driver.NewExchange(body, completion(b.Body)))
		}
		out[i] = w
	}
	return out
}

// drive keeps all workers going for a while and returns the time of every decision, in seconds.
func drive(ctx context.Context, d *driver.Driver, workers []*worker, length time.Duration) (time.Duration, []float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	began := time.Now()
	for _, w := range workers {
		w.decisions = w.decisions[:0]
		wg.Go(func() {
			for ctx.Err() == nil && time.Since(began) < length {
				if err := w.send(ctx, d); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return 0, nil, err
	}
	var all []float64
	for _, w := range workers {
		all = append(all, w.decisions...)
	}
	if len(all) == 0 {
		return 0, nil, fmt.Errorf("no exchange ended within %v; give more time", length)
	}
	return took, all, nil
}

func (w *worker) send(ctx context.Context, d *driver.Driver) error {
	n := w.next
	w.next += w.step
	i := int(n) % len(w.exchanges)
	w.prompts.mark(i, n)
	r, err := d.Exchange(ctx, w.exchanges[i])
	if err != nil {
		return fmt.Errorf("exchange %d: %w", n, err)
	}
	w.decisions = append(w.decisions, r.Decision.Seconds())
	return nil
}
