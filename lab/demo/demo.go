package demo

import (
	"context"
	"errors"
	"time"

	"github.com/presage-router/presage/lab/gateway"
	"github.com/presage-router/presage/lab/load"
)

// Config describes a demo. All fields but those with a default must be set.
type Config struct {
	Engines     []Engines
	Model       string
	Workload    *Workload
	Policies    []string
	Speed       float64             // engine seconds per second, and of the arrivals with them
	Limit       time.Duration       // on the wall clock, after which no request is sent; 0: none
	Envoy       string              // path of an Envoy binary; empty: the built-in gateway
	Destination gateway.Destination // how the gateway goes where the service says
	Seed        uint64
	Start       Start
	View        View // told what happens
}

// View is told of a demo's progress, from one goroutine.
type View interface {
	// Ready tells that everything runs for the first time.
	Ready(Setup)
	// Progress tells how far a policy is, a few times a second.
	Progress(policy string, elapsed, total time.Duration, soFar load.Score, forecasts Accuracy)
	// Finished tells a policy's result and the errors of its failed requests, at most a few.
	Finished(policy string, s load.Score, failures []error)
}

// Setup is what was started, where, and how long it took.
type Setup struct {
	Engines                               string
	Addresses                             Addresses
	Admin                                 string // where the service's pages are; empty: nowhere
	TookEngines, TookService, TookGateway time.Duration
}

// Result is what the policies achieved.
type Result struct {
	Policies []string // those that were finished, in order
	Scores   map[string]load.Score
	Accuracy Accuracy // of the forecasts under all policies; each policy's service begins knowing nothing
}

// Totals are the requests of all policies, and those of them with a complete answer.
func (r *Result) Totals() (requests, ok int) {
	for _, s := range r.Scores {
		requests, ok = requests+s.Requests, ok+s.OK
	}
	return requests, ok
}

// Run runs the policies one after another. The result holds those that were finished, with an error
// too: that of ctx when it ended.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	r := &Result{Scores: map[string]load.Score{}, Accuracy: accuracy(nil)}
	if cfg.Speed <= 0 {
		cfg.Speed = 1
	}
	n := 0
	for _, e := range cfg.Engines {
		n += e.Count
	}
	at, err := freeAddresses(ctx, n)
	if err != nil {
		return r, err
	}
	var audits []audited
	for i, policy := range cfg.Policies {
		s, err := startStack(ctx, &cfg, at, policy)
		if err != nil {
			return r, errors.Join(ctx.Err(), err)
		}
		if i == 0 {
			cfg.View.Ready(Setup{
				Engines: describe(cfg.Engines, cfg.Model), Addresses: *at, Admin: s.service.Admin(),
				TookEngines: s.tookEngines, TookService: s.tookService, TookGateway: s.tookGateway,
			})
		}
		outcomes := drive(ctx, &cfg, s, policy)
		if s.envoy != nil {
			err = s.envoy.failed()
		}
		err = errors.Join(ctx.Err(), err, s.stop())
		if err != nil {
			return r, err
		}
		sc := load.Sum(outcomes, cfg.Workload.SLO, cfg.sent())
		audits = append(audits, s.audit.learned()...)
		r.Accuracy = accuracy(audits)
		r.Policies = append(r.Policies, policy)
		r.Scores[policy] = sc
		cfg.View.Finished(policy, sc, load.Failures(outcomes))
	}
	return r, nil
}

// sent is how long requests are sent, on the engines' clock.
func (c *Config) sent() time.Duration {
	if limit := time.Duration(float64(c.Limit) * c.Speed); limit > 0 && limit < c.Workload.Duration {
		return limit
	}
	return c.Workload.Duration
}

// drive sends the workload to a stack and reports on the way.
func drive(ctx context.Context, cfg *Config, s *stack, policy string) []load.Outcome {
	c := load.NewClient(s.url, cfg.Model, cfg.Workload.SLO)
	c.Speed = cfg.Speed
	defer c.Close()
	var t load.Tally
	total := scale(cfg.sent(), cfg.Speed)
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		c.Send(ctx, &cfg.Workload.Workload, total, &t)
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return t.Outcomes()
		case <-tick.C:
			elapsed := min(time.Since(began), total)
			cfg.View.Progress(policy, elapsed, total, t.SoFar(cfg.Workload.SLO, elapsed), accuracy(s.audit.learned()))
		}
	}
}
