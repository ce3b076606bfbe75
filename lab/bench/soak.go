package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/presage-router/presage/internal/loopback"
)

// Soak is many streaming clients through a real proxy, some of which leave before their answer is
// complete, as clients do.
type Soak struct {
	Program  Program
	Clients  int
	Leave    float64 // share of requests whose client leaves early
	Duration time.Duration
	Policy   string

	// Proxy starts a proxy that listens, asks the picker and reaches the endpoints, and returns how to
	// end it.
	Proxy func(listen, picker string, endpoints []Endpoint) (stop func(), err error)
}

// SoakResult is what [Soak.Run] counted.
type SoakResult struct {
	Requests        int     `json:"requests"`
	Failed          int     `json:"failed"`  // of the clients that stayed
	Aborted         int     `json:"aborted"` // clients that left
	InflightEnd     int     `json:"inflight_end"`
	GoroutinesStart int     `json:"goroutines_start"`
	GoroutinesEnd   int     `json:"goroutines_end"`
	CPU             float64 `json:"cpu_us_per_request"`
	Resident        float64 `json:"resident_mib"`
}

// soakEngines is how many engines serve.
const soakEngines = 4

// Run drives the clients, lets everything end, and looks at what is left. An error says that the
// service broke its promise: an empty ledger, no goroutine left, no failed request.
func (b *Soak) Run(ctx context.Context) (r SoakResult, err error) {
	engines, err := startEngines(ctx, soakEngines, http.HandlerFunc(stream))
	if err != nil {
		return r, err
	}
	defer engines.stop()
	c, err := startChild(ctx, b.Program, Settings{Endpoints: engines.list, Policy: b.Policy, Scrape: scrapeInterval, Answers: 2})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	free, err := loopback.Free(ctx, 1)
	if err != nil {
		return r, err
	}
	listen := free[0]
	stop, err := b.Proxy(listen, c.first.ExtProc, engines.list)
	if err != nil {
		return r, err
	}
	defer stop()
	load := &soakers{url: "http://" + listen + "/v1/chat/completions", leave: b.Leave}
	if err := load.await(ctx); err != nil {
		return r, err
	}
	start, err := settle(ctx, c, 0)
	if err != nil {
		return r, err
	}
	load.run(ctx, b.Clients, b.Duration)
	end, err := settle(ctx, c, start.Goroutines)
	if err != nil {
		return r, err
	}
	r = SoakResult{
		Requests: load.requests, Failed: load.failed, Aborted: load.aborted, InflightEnd: end.Inflight,
		GoroutinesStart: start.Goroutines, GoroutinesEnd: end.Goroutines, Resident: float64(end.Resident) / (1 << 20),
	}
	if r.Requests > 0 {
		r.CPU = (end.CPU - start.CPU).Seconds() * 1e6 / float64(r.Requests)
	}
	return r, r.check(load.cause)
}

// check says which promise was broken.
func (r *SoakResult) check(cause error) error {
	switch {
	case r.InflightEnd != 0:
		return fmt.Errorf("%d requests are left in the ledger, with no client left", r.InflightEnd)
	case r.GoroutinesEnd > r.GoroutinesStart+goroutineSlack:
		return fmt.Errorf("%d goroutines are left of %d at the start", r.GoroutinesEnd, r.GoroutinesStart)
	case r.Failed > 0:
		return fmt.Errorf("%d of %d requests failed, the first of them: %w", r.Failed, r.Requests, cause)
	case r.Requests == 0:
		return errors.New("no request ended; give more time")
	}
	return nil
}

// goroutineSlack is what comes and goes by itself: health checks, connections of the proxy, scrapes.
const goroutineSlack = 16

// patience is how long what is left may take to end.
const patience = 10 * time.Second

// settle waits until the ledger is empty and the goroutines are about as many as they were, or for as
// long as patience allows, and returns the last report.
func settle(ctx context.Context, c *child, goroutines int) (Report, error) {
	for began := time.Now(); ; {
		r, err := c.report()
		if err != nil {
			return r, err
		}
		calm := r.Inflight == 0 && (goroutines == 0 || r.Goroutines <= goroutines+goroutineSlack)
		if calm || time.Since(began) > patience {
			return r, nil
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return r, err
		}
	}
}

// soakers are the clients.
type soakers struct {
	url   string
	leave float64

	mu                        sync.Mutex
	requests, failed, aborted int
	cause                     error // of the first failure
}

func (s *soakers) count(aborted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	switch {
	case aborted:
		s.aborted++
	case err != nil:
		s.failed++
		if s.cause == nil {
			s.cause = err
		}
	}
}
