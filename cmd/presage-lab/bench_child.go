package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/bench"
)

// benchChildCommand is the service under test, in a process of its own.
type benchChildCommand struct{}

// Run serves until the parent closes the pipe.
func (benchChildCommand) Run() error { return bench.Attend(os.Stdin, os.Stdout, startBenched) }

// startBenched runs the service that `presage serve` runs.
func startBenched(s bench.Settings) (bench.Service, error) {
	cfg := config.Default()
	cfg.Listen = config.Listen{ExtProc: "127.0.0.1:0", Health: "127.0.0.1:0", Admin: "127.0.0.1:0"}
	cfg.Policy, cfg.Shadow, cfg.Fleet.Scrape.Interval, cfg.Answer.Endpoints = s.Policy, s.Shadow, s.Scrape, s.Answers
	list := make([]*fleet.Endpoint, len(s.Endpoints))
	for i, e := range s.Endpoints {
		addr, err := netip.ParseAddrPort(e.Addr)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.Name, err)
		}
		list[i] = &fleet.Endpoint{Name: e.Name, Addr: addr, Engine: "vllm", TP: 1}
	}
	svc, err := serve.New(cfg, serve.Deps{Endpoints: list, Seed: 1})
	if err != nil {
		return nil, err
	}
	r := &runningService{Service: svc}
	r.running.Go(func() { r.err = svc.Run(context.Background()) })
	return r, nil
}

var _ bench.Service = (*runningService)(nil)
