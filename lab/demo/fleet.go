package demo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/emulator"
	"github.com/presage-router/presage/lab/engine"
)

// Engines is a number of equal engines.
type Engines struct {
	GPU   string
	Count int
}

// describe names a fleet, as "4 emulated (2 H100, 2 A100), llama-3.1-8b".
func describe(all []Engines, model string) string {
	n := 0
	kinds := make([]string, len(all))
	for i, e := range all {
		n += e.Count
		kinds[i] = fmt.Sprintf("%d %s", e.Count, e.GPU)
	}
	return fmt.Sprintf("%d emulated (%s), %s", n, strings.Join(kinds, ", "), model)
}

// engines are emulated servers that listen and run.
type engines struct {
	endpoints []*fleet.Endpoint
	servers   []*http.Server
	emulators []*emulator.Emulator
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// startEngines serves emulated engines on the given addresses.
func startEngines(cfg *Config, addrs []string) (*engines, error) {
	table, err := engine.Builtin()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	es := &engines{cancel: cancel}
	for _, kind := range cfg.Engines {
		coefs, err := table.Find(kind.GPU, cfg.Model, 0, "")
		if err != nil {
			es.stop()
			return nil, err
		}
		for i := range kind.Count {
			e, err := emulator.New(emulator.Config{
				Engine: engine.Config{Coefs: *coefs, Blocks: cfg.Workload.Blocks},
				Model:  cfg.Model, Speed: cfg.Speed, MaxLen: maxPrompt + maxOutput,
			})
			if err == nil {
				name := fmt.Sprintf("%s-%d", strings.ToLower(kind.GPU), i+1)
				err = es.serve(ctx, e, addrs[len(es.endpoints)], &fleet.Endpoint{Name: name, Model: cfg.Model, Engine: "vllm", GPU: kind.GPU, TP: coefs.TP})
			}
			if err != nil {
				es.stop()
				return nil, err
			}
		}
	}
	return es, nil
}

func (es *engines) serve(ctx context.Context, e *emulator.Emulator, addr string, ep *fleet.Endpoint) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("engine %s: %w", ep.Name, err)
	}
	ep.Addr = l.Addr().(*net.TCPAddr).AddrPort()
	ep.Addr = netip.AddrPortFrom(ep.Addr.Addr().Unmap(), ep.Addr.Port())
	es.endpoints, es.emulators = append(es.endpoints, ep), append(es.emulators, e)
	es.running.Go(func() { e.Run(ctx) })
	es.servers = append(es.servers, serve(l, e, &es.running))
	return nil
}

// serve runs a web server until it is closed.
func serve(l net.Listener, h http.Handler, running *sync.WaitGroup) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	running.Go(func() { _ = s.Serve(l) }) // it always ends with an error: Close was called
	return s
}

func (es *engines) stop() {
	es.cancel()
	for _, s := range es.servers {
		_ = s.Close()
	}
	es.running.Wait()
}
