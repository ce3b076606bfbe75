package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/presage-router/presage/internal/loopback"
	"github.com/presage-router/presage/lab/gateway"
	"github.com/presage-router/presage/lab/load"
)

// Addresses are where everything listens, the same for every policy.
type Addresses struct {
	Engines []string
	ExtProc string // of the service
	Health  string
	Admin   string
	Gateway string
}

// freeAddresses finds ports of the loopback interface that nobody uses now.
func freeAddresses(ctx context.Context, engines int) (*Addresses, error) {
	list, err := loopback.Free(ctx, engines+4)
	if err != nil {
		return nil, err
	}
	return &Addresses{Engines: list[4:], ExtProc: list[0], Health: list[1], Admin: list[2], Gateway: list[3]}, nil
}

// stack is everything between a client and the engines' numbers.
type stack struct {
	engines *engines
	service Service
	gateway *gateway.Gateway
	front   *http.Server // of the built-in gateway
	running sync.WaitGroup
	envoy   *Envoy
	url     string // where clients send requests
	audit   audit

	tookEngines, tookService, tookGateway time.Duration
}

// startStack starts everything for one policy and waits until a request gets through.
func startStack(ctx context.Context, cfg *Config, at *Addresses, policy string) (*stack, error) {
	s := &stack{url: "http://" + at.Gateway}
	if err := s.start(ctx, cfg, at, policy); err != nil {
		_ = s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stack) start(ctx context.Context, cfg *Config, at *Addresses, policy string) (err error) {
	began := time.Now()
	lap := func(d *time.Duration) {
		*d = time.Since(began)
		began = time.Now()
	}
	if s.engines, err = startEngines(cfg, at.Engines); err != nil {
		return err
	}
	lap(&s.tookEngines)
	answers := 2
	if cfg.Destination == gateway.OriginalDst {
		answers = 1 // it takes no list
	}
	wall := load.SLO{TTFT: scale(cfg.Workload.SLO.TTFT, cfg.Speed), ITL: scale(cfg.Workload.SLO.ITL, cfg.Speed)}
	s.service, err = cfg.Start(Settings{
		ExtProc: at.ExtProc, Health: at.Health, Admin: at.Admin, Endpoints: s.engines.endpoints,
		Policy: policy, SLO: wall, Answers: answers, Seed: cfg.Seed, Observer: &s.audit,
	})
	if err != nil {
		return err
	}
	lap(&s.tookService)
	if cfg.Envoy != "" {
		s.envoy, err = StartEnvoy(cfg.Envoy, at.Gateway, s.service.ExtProc(), s.engines.endpoints)
		if cfg.Destination == gateway.OriginalDst {
			s.url += originalDst
		}
	} else {
		err = s.startGateway(ctx, cfg, at.Gateway)
	}
	if err == nil {
		err = s.await(ctx)
	}
	lap(&s.tookGateway)
	return err
}

func scale(d time.Duration, speed float64) time.Duration {
	return max(time.Millisecond, time.Duration(float64(d)/speed))
}

func (s *stack) startGateway(ctx context.Context, cfg *Config, addr string) error {
	g, err := gateway.New(gateway.Config{EPP: s.service.ExtProc(), Destination: cfg.Destination})
	if err != nil {
		return err
	}
	s.gateway = g
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	s.front = serve(l, g, &s.running)
	return nil
}

// readyLimit is how long the way to the engines may take to open.
const readyLimit = 30 * time.Second

// await asks for the models until an engine answers, through everything in between.
func (s *stack) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		last := s.probe(ctx, client)
		if last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("gateway: no answer from an engine within %v: %w", readyLimit, last)
		}
		if s.envoy != nil {
			if err := s.envoy.failed(); err != nil {
				return err
			}
		}
	}
}

func (s *stack) probe(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/models", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// stop ends everything, from the client's side on.
func (s *stack) stop() error {
	var err error
	if s.envoy != nil {
		s.envoy.Stop()
	}
	if s.front != nil {
		_ = s.front.Close()
		s.running.Wait()
	}
	if s.gateway != nil {
		_ = s.gateway.Close()
	}
	if s.service != nil {
		err = s.service.Stop()
	}
	if s.engines != nil {
		s.engines.stop()
	}
	return err
}
