package main

import (
	"context"
	"time"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/bench"
)

type benchIdleCommand struct {
	Endpoints int           `default:"8" help:"Endpoints to scrape (${default})."`
	Duration  time.Duration `default:"20s" help:"Length of the measured part (${default})."`
	Profile   string        `placeholder:"FILE" help:"Write a CPU profile of the service."`
	JSON      bool          `name:"json" help:"Print one JSON object on the last line."`
}

// Run measures the service as a child process.
func (c *benchIdleCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if err := within("endpoints", c.Endpoints, 1, 1000); err != nil {
		return err
	}
	if err := longEnough(c.Duration); err != nil {
		return err
	}
	program, err := self()
	if err != nil {
		return err
	}
	r, err := (&bench.Idle{Program: program, Endpoints: c.Endpoints, Duration: c.Duration, Profile: c.Profile}).Run(ctx)
	if err != nil {
		return err
	}
	t.Result("%d endpoints: %.2f ms of CPU per second for %.1f pages/s; %.0f MiB resident", r.Endpoints, r.CPU, r.Pages, r.Resident)
	if c.JSON {
		return t.JSON(r)
	}
	return nil
}
