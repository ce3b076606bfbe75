package main

import (
	"context"
	"sync"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/lab/demo"
	"github.com/presage-router/presage/router"
)

// runningService is the real service, as a demo sees it.
type runningService struct {
	*serve.Service
	running sync.WaitGroup
	err     error
}

// startService runs the service that `presage serve` runs, for a demo.
func startService(s demo.Settings) (demo.Service, error) {
	cfg := config.Default()
	cfg.Listen = config.Listen{ExtProc: s.ExtProc, Health: s.Health, Admin: s.Admin}
	cfg.Policy = s.Policy
	cfg.SLO.TTFT, cfg.SLO.ITL = s.SLO.TTFT, s.SLO.ITL
	cfg.Answer.Endpoints = s.Answers
	svc, err := serve.New(cfg, serve.Deps{Endpoints: s.Endpoints, Seed: s.Seed, Observers: []router.Observer{s.Observer}})
	if err != nil {
		return nil, err
	}
	r := &runningService{Service: svc}
	r.running.Go(func() { r.err = svc.Run(context.Background()) })
	return r, nil
}

func (r *runningService) ExtProc() string { return r.Addrs().ExtProc }

func (r *runningService) Admin() string { return r.Addrs().Admin }

// Stop ends the service at once and returns what it failed of, if it did.
func (r *runningService) Stop() error {
	r.Service.Stop()
	r.running.Wait()
	return r.err
}

var _ demo.Service = (*runningService)(nil)
