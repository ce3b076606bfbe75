package main

import (
	"context"
	"errors"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/bench"
)

type benchExtprocCommand struct {
	Endpoints   int           `default:"8" help:"Endpoints to choose among (${default})."`
	Body        int           `default:"2048" help:"Bytes of a request body (${default})."`
	Concurrency int           `default:"8" help:"Exchanges at a time (${default})."`
	Policy      string        `default:"weighted" help:"Policy that decides (${default})."`
	Shadow      []string      `placeholder:"NAME" help:"Measure what these shadow policies add, against the same service without them."`
	Pairs       int           `default:"10" help:"With --shadow, pairs of runs (${default})."`
	Duration    time.Duration `default:"10s" help:"Length of the measured part (${default})."`
	Profile     string        `placeholder:"FILE" help:"Write a CPU profile of the service."`
	JSON        bool          `name:"json" help:"Print one JSON object on the last line."`
}

// Run measures the service as a child process.
func (c *benchExtprocCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	for _, err := range []error{
		within("endpoints", c.Endpoints, 1, 1000), within("body", c.Body, 256, 32<<20),
		within("concurrency", c.Concurrency, 1, 10_000), within("pairs", c.Pairs, 2, 1000), longEnough(c.Duration),
	} {
		if err != nil {
			return err
		}
	}
	program, err := self()
	if err != nil {
		return err
	}
	b := &bench.ExtProc{
		Program: program, Endpoints: c.Endpoints, Body: c.Body, Concurrency: c.Concurrency,
		Duration: c.Duration, Policy: c.Policy, Profile: c.Profile,
	}
	if len(c.Shadow) > 0 {
		return c.shadow(ctx, t, b)
	}
	r, err := b.Run(ctx)
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

func (c *benchExtprocCommand) shadow(ctx context.Context, t *terminal.Terminal, b *bench.ExtProc) error {
	if c.Profile != "" {
		return command.Usage(errors.New("--profile: one service only; leave out --shadow"))
	}
	if err := knownPolicies("shadow", c.Shadow); err != nil {
		return command.Usage(err)
	}
	r, err := b.RunShadow(ctx, c.Shadow, c.Pairs)
	if err != nil {
		return err
	}
	t.Result("%d bytes: %.1f us of CPU per request, %.1f us shadowed: %+.1f %% (%+.1f to %+.1f), %d pairs",
		r.Body, r.Without, r.With, 100*r.Added, 100*r.CI95[0], 100*r.CI95[1], r.Pairs)
	if c.JSON {
		return t.JSON(r)
	}
	return nil
}
