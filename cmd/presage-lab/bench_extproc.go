package main

import (
	"context"
	"time"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/bench"
)

type benchExtprocCommand struct {
	Endpoints   int           `default:"8" help:"Endpoints to choose among (${default})."`
	Body        int           `default:"2048" help:"Bytes of a request body (${default})."`
	Concurrency int           `default:"8" help:"Exchanges at a time (${default})."`
	Policy      string        `default:"weighted" help:"Policy that decides (${default})."`
	Duration    time.Duration `default:"10s" help:"Length of the measured part (${default})."`
	Profile     string        `placeholder:"FILE" help:"Write a CPU profile of the service."`
	JSON        bool          `name:"json" help:"Print one JSON object on the last line."`
}

// Run measures the service as a child process.
func (c *benchExtprocCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	for _, err := range []error{
		within("endpoints", c.Endpoints, 1, 1000), within("body", c.Body, 256, 32<<20),
		within("concurrency", c.Concurrency, 1, 10_000), longEnough(c.Duration),
	} {
		if err != nil {
			return err
		}
	}
	program, err := self()
	if err != nil {
		return err
	}
	r, err := (&bench.ExtProc{
		Program: program, Endpoints: c.Endpoints, Body: c.Body, Concurrency: c.Concurrency,
		Duration: c.Duration, Policy: c.Policy, Profile: c.Profile,
	}).Run(ctx)
	if err != nil {
		return err
	}
	t.Result("%d bytes: %.0f us of CPU per request, %.0f exchanges/s, decided in %.0f us p50, %.0f us p99; %.0f MiB resident",
		r.Body, r.CPU, r.StreamsPerSecond, r.P50, r.P99, r.Resident)
	if c.JSON {
		return t.JSON(r)
	}
	return nil
}
