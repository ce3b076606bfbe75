package main

import (
	"context"
	"fmt"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/bench"
	"github.com/presage-router/presage/router"
)

type benchDecideCommand struct {
	Endpoints int           `default:"100" help:"Endpoints to choose among (${default})."`
	Policy    string        `default:"weighted" help:"Policy that decides (${default})."`
	Duration  time.Duration `default:"5s" help:"Length of the measured part (${default})."`
	JSON      bool          `name:"json" help:"Print one JSON object on the last line."`
}

// Run measures decisions in process.
func (c *benchDecideCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if err := within("endpoints", c.Endpoints, 1, 10_000); err != nil {
		return err
	}
	if err := longEnough(c.Duration); err != nil {
		return err
	}
	policy, err := serve.Policies().New(c.Policy, router.Params{Seed: 1})
	if err != nil {
		return command.Usage(fmt.Errorf("--policy: %w", err))
	}
	r, err := (&bench.Decide{Endpoints: c.Endpoints, Policy: policy, Duration: c.Duration}).Run(ctx)
	if err != nil {
		return err
	}
	t.Result("%d endpoints, %s: p50 %.1f us, p99 %.1f us, %.3g allocations per decision (%d decisions)",
		r.Endpoints, c.Policy, r.P50, r.P99, r.Allocs, r.Decisions)
	t.Result("%.3g million pairs of forecasts per second on one core, blended of %d members", r.Pairs/1e6, r.Voices)
	if c.JSON {
		return t.JSON(r)
	}
	return nil
}
