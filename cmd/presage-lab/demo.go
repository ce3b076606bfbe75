package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/demo"
	"github.com/presage-router/presage/lab/gateway"
	"github.com/presage-router/presage/router"
)

type demoCommand struct {
	Duration time.Duration `placeholder:"20s" help:"Length of the load, per policy; of a trace at most so much." group:"Load"`
	Trace    string        `placeholder:"FILE" help:"Replay a trace (Azure, Mooncake and others) instead of the bundled load." group:"Load"`
	Window   time.Duration `placeholder:"10m" help:"Part of the trace to replay, from its start." group:"Load"`
	Speed    float64       `placeholder:"5" help:"How much faster than life the trace and the engines run." group:"Load"`
	SLOTTFT  time.Duration `name:"slo-ttft" placeholder:"150ms" help:"Time to the first token that counts as in SLO; of a trace 2s." group:"Load"`
	SLOITL   time.Duration `name:"slo-itl" placeholder:"25ms" help:"Mean gap between tokens that counts as in SLO; of a trace 50ms." group:"Load"`
	Seed     uint64        `default:"1" help:"Of the bundled load and of random choices (${default})." group:"Load"`

	Policies    []string `placeholder:"A,B" help:"Policies to compare, in this order; each starts with cold caches and a learner that knows nothing." group:"Routing"`
	Envoy       string   `placeholder:"PATH" help:"Use this Envoy instead of the built-in gateway." group:"Routing"`
	Destination string   `enum:"override-host,original-dst" default:"override-host" help:"How the gateway learns the endpoint: override-host or original-dst." group:"Routing"`

	JSON bool `name:"json" help:"Print one JSON object on the last line." group:"Output"`
}

// Defaults of flags that mean something only when given.
const (
	demoDuration = 20 * time.Second
	demoWindow   = 10 * time.Minute
	demoSpeed    = 5
	demoModel    = "llama-3.1-8b"
)

// engines are the emulated fleet: enough of it for the load of a published trace.
func engines(replay bool) []demo.Engines {
	if replay {
		return []demo.Engines{{GPU: "H100", Count: 4}, {GPU: "A100", Count: 4}}
	}
	return []demo.Engines{{GPU: "H100", Count: 2}, {GPU: "A100", Count: 2}}
}

// lineup are the policies when none are named. A replay takes minutes for each.
func lineup(replay bool) []string {
	if replay {
		return []string{"predictive", "weighted", "round-robin"}
	}
	return []string{"predictive", "adaptive", "llmd-sticky-token", "weighted", "round-robin"}
}

// Run shows the policies, one after another. A request that fails makes the demo fail.
func (c *demoCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	cfg, err := c.config()
	if err != nil {
		return command.Usage(err)
	}
	view := &demoView{t: t, cfg: cfg}
	cfg.View = view
	r, err := demo.Run(ctx, *cfg)
	requests, ok := r.Totals()
	view.Forecasts(r.Accuracy)
	switch {
	case ctx.Err() != nil:
		t.Note("interrupted: %d of %d policies finished", len(r.Policies), len(cfg.Policies))
	case err == nil && ok < requests:
		err = fmt.Errorf("%d of %d requests failed", requests-ok, requests)
	case err == nil:
		t.Note("One %s run on emulated GPUs shows how it works, not how much you gain.", length(cfg.Workload.Duration))
	}
	if c.JSON && len(r.Policies) > 0 {
		err = errors.Join(err, t.JSON(newDemoJSON(r)))
	}
	return err
}

// config checks the flags. Its errors are of usage.
func (c *demoCommand) config() (*demo.Config, error) {
	replay := c.Trace != ""
	switch {
	case c.Duration < 0:
		return nil, fmt.Errorf("--duration %v: not positive; write a length as 20s", c.Duration)
	case !replay && (c.Window != 0 || c.Speed != 0):
		return nil, errors.New("--window, --speed: of a trace only; add --trace FILE or leave them out")
	case c.Window < 0:
		return nil, fmt.Errorf("--window %v: not positive; write a length as 10m", c.Window)
	case c.SLOTTFT < 0 || c.SLOITL < 0:
		return nil, fmt.Errorf("--slo-ttft %v, --slo-itl %v: not positive; write lengths as 150ms", c.SLOTTFT, c.SLOITL)
	case c.Speed < 0 || c.Speed > 100:
		return nil, fmt.Errorf("--speed %v: not between 0 and 100; write how many times faster than life", c.Speed)
	}
	cfg := &demo.Config{
		Engines: engines(replay), Model: demoModel,
		Policies: c.Policies, Limit: c.Duration, Envoy: c.Envoy, Seed: c.Seed, Speed: 1, Start: startService,
	}
	if c.Envoy != "" {
		if _, err := exec.LookPath(c.Envoy); err != nil {
			return nil, fmt.Errorf("--envoy %s: no such program; give the path of an Envoy binary, or leave it out for the built-in gateway", c.Envoy)
		}
	}
	if c.Destination == "original-dst" {
		cfg.Destination = gateway.OriginalDst
	}
	if len(cfg.Policies) == 0 {
		cfg.Policies = lineup(replay)
	}
	if err := knownPolicies("policies", cfg.Policies); err != nil {
		return nil, err
	}
	var err error
	if cfg.Workload, err = c.workload(); err != nil {
		return nil, err
	}
	if replay {
		cfg.Speed = cmp.Or(c.Speed, demoSpeed)
	}
	slo := &cfg.Workload.SLO
	slo.TTFT, slo.ITL = cmp.Or(c.SLOTTFT, slo.TTFT), cmp.Or(c.SLOITL, slo.ITL)
	return cfg, nil
}

// workload makes the load: of the trace, if one is given.
func (c *demoCommand) workload() (*demo.Workload, error) {
	if c.Trace == "" {
		return demo.Bundled(cmp.Or(c.Duration, demoDuration), c.Seed), nil
	}
	return demo.Replay(c.Trace, cmp.Or(c.Window, demoWindow))
}

// knownPolicies checks the names that a flag gives against what the service knows.
func knownPolicies(flag string, names []string) error {
	known := serve.Policies()
	seen := map[string]bool{}
	for _, name := range names {
		if _, err := known.New(name, router.Params{}); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		if seen[name] {
			return fmt.Errorf("--%s: %q twice; name each policy once", flag, name)
		}
		seen[name] = true
	}
	return nil
}
