package main

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/bench"
	"github.com/presage-router/presage/lab/demo"
)

type benchSoakCommand struct {
	Envoy    string        `required:"" placeholder:"PATH" help:"Envoy to send everything through."`
	Clients  int           `default:"1000" help:"Streaming clients at a time (${default})."`
	Leave    float64       `default:"0.2" help:"Share of requests whose client leaves early (${default})."`
	Policy   string        `default:"weighted" help:"Policy that decides (${default})."`
	Duration time.Duration `default:"30s" help:"How long clients go on asking (${default})."`
	JSON     bool          `name:"json" help:"Print one JSON object on the last line."`
}

// Run fails when the service does not keep its promises, and prints what was counted all the same.
func (c *benchSoakCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if err := within("clients", c.Clients, 1, 20_000); err != nil {
		return err
	}
	if err := longEnough(c.Duration); err != nil {
		return err
	}
	if !(c.Leave >= 0 && c.Leave <= 1) { //nolint:staticcheck // NaN must fail too
		return command.Usage(fmt.Errorf("--leave %v: no share; write one from 0 to 1", c.Leave))
	}
	if _, err := exec.LookPath(c.Envoy); err != nil {
		return command.Usage(fmt.Errorf("--envoy %s: no such program; give the path of an Envoy binary", c.Envoy))
	}
	program, err := self()
	if err != nil {
		return err
	}
	r, err := (&bench.Soak{
		Program: program, Clients: c.Clients, Leave: c.Leave, Duration: c.Duration, Policy: c.Policy, Proxy: c.proxy,
	}).Run(ctx)
	if r.Requests > 0 {
		t.Result("%d requests, %d failed, %d left early; in the ledger at the end %d; goroutines %d, then %d; %.0f us of CPU per request; %.0f MiB resident",
			r.Requests, r.Failed, r.Aborted, r.InflightEnd, r.GoroutinesStart, r.GoroutinesEnd, r.CPU, r.Resident)
		if c.JSON {
			if jerr := t.JSON(r); jerr != nil {
				return jerr
			}
		}
	}
	return err
}

// proxy starts Envoy.
func (c *benchSoakCommand) proxy(listen, picker string, endpoints []bench.Endpoint) (func(), error) {
	list := make([]*fleet.Endpoint, len(endpoints))
	for i, e := range endpoints {
		addr, err := netip.ParseAddrPort(e.Addr)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.Name, err)
		}
		list[i] = &fleet.Endpoint{Name: e.Name, Addr: addr}
	}
	v, err := demo.StartEnvoy(c.Envoy, listen, picker, list)
	if err != nil {
		return nil, err
	}
	return v.Stop, nil
}
