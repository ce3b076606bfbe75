package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/emulator"
	"github.com/presage-router/presage/lab/engine"
)

type emulateCommand struct {
	GPU   string `required:"" placeholder:"GPU" help:"GPU type: H100, H200, A100, L40S or B200." group:"Engine"`
	Model string `required:"" help:"Model, as llama-3.1-8b." group:"Engine"`
	TP    int    `name:"tp" default:"0" help:"Tensor-parallel width; 0: the narrowest known." group:"Engine"`

	Blocks     int      `default:"0" help:"KV blocks of 16 tokens; 0: what the memory holds." group:"Engine"`
	MaxSeqs    int      `default:"0" help:"Requests in a batch; 0: vLLM's default." group:"Engine"`
	MaxBatched int      `default:"0" help:"Tokens in a batch; 0: vLLM's default." group:"Engine"`
	Adapters   []string `placeholder:"NAME" help:"LoRA adapters known from the start." group:"Engine"`
	MaxLoRAs   int      `name:"max-loras" default:"0" help:"Adapters in GPU memory; 0: any number." group:"Engine"`
	Speed      float64  `default:"1" help:"Engine seconds per second." group:"Engine"`

	Host    string        `default:"127.0.0.1" help:"Address to listen on." group:"Server"`
	Port    int           `default:"8101" help:"Port to listen on; 0: a free one." group:"Server"`
	DP      int           `name:"dp" default:"1" help:"Data-parallel ranks; rank r has each port plus r." group:"Server"`
	Dialect string        `enum:"vllm,sglang" default:"vllm" help:"Whose metrics page: vllm or sglang." group:"Server"`
	Load    time.Duration `default:"0s" help:"Time to load the model; requests get 503 before." group:"Server"`

	Events       int    `placeholder:"PORT" help:"Publish KV events over ZeroMQ on this port." group:"KV events"`
	Replay       int    `placeholder:"PORT" help:"Answer requests for old KV events on this port." group:"KV events"`
	EventsFormat string `enum:"map,array" default:"map" help:"map (vLLM from 0.24 on) or array (before; SGLang)." group:"KV events"`
	EventsTopic  string `placeholder:"TOPIC" help:"Topic instead of kv@HOST:PORT@MODEL." group:"KV events"`
}

// Run serves until a signal.
func (c *emulateCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := c.check(); err != nil {
		return command.Usage(err)
	}
	ranks := make([]*rank, 0, c.DP)
	defer func() {
		for _, r := range ranks {
			r.close()
		}
	}()
	for i := range c.DP {
		r, err := c.open(ctx, i)
		if err != nil {
			return err
		}
		ranks = append(ranks, r)
		t.Note("emulating %s on http://%s, %d KV blocks, %s metrics", r.coefs, r.web.Addr(), r.emulator.Stats().Blocks, c.Dialect)
	}
	failed := make(chan error, len(ranks))
	var running sync.WaitGroup
	for _, r := range ranks {
		running.Go(func() {
			defer stop()
			failed <- r.run(ctx)
		})
	}
	running.Wait()
	for i, r := range ranks {
		if late := r.emulator.Lateness(); late.Steps > 0 {
			t.Note("rank %d: %d steps, late by %.2f ms p50, %.2f ms p99", i, late.Steps, late.P50.Seconds()*1e3, late.P99.Seconds()*1e3)
		}
	}
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *emulateCommand) check() error {
	for _, p := range []struct {
		flag string
		port int
	}{{"--port", c.Port}, {"--events", c.Events}, {"--replay", c.Replay}} {
		if p.port < 0 || p.port > 65535 {
			return fmt.Errorf("%s %d: no port; write one from 0 to 65535", p.flag, p.port)
		}
	}
	switch {
	case c.DP < 1 || c.DP > 64:
		return fmt.Errorf("--dp %d: not between 1 and 64; write the number of ranks", c.DP)
	case c.Replay != 0 && c.Events == 0:
		return errors.New("--replay: nothing to ask for; add --events PORT")
	}
	_, _, err := c.make(0, "")
	return err
}

// make makes the engine of a rank, which serves at the given address.
func (c *emulateCommand) make(rank int, addr string) (*emulator.Emulator, *engine.Coefs, error) {
	table, err := engine.Builtin()
	if err != nil {
		return nil, nil, err
	}
	coefs, err := table.Find(c.GPU, c.Model, c.TP, "")
	if err != nil {
		return nil, nil, err
	}
	dialect, err := emulator.ParseDialect(c.Dialect)
	if err != nil {
		return nil, nil, err
	}
	cfg := emulator.Config{
		Engine: engine.Config{Coefs: *coefs, Blocks: c.Blocks, MaxSeqs: c.MaxSeqs, MaxBatched: c.MaxBatched, MaxLoRA: c.MaxLoRAs},
		Model:  c.Model, Adapters: c.Adapters, Rank: rank, Speed: c.Speed, Dialect: dialect, Load: c.Load,
	}
	if c.Events != 0 {
		cfg.Events = &emulator.Events{Topic: c.EventsTopic, Array: c.EventsFormat == "array"}
		if c.EventsTopic == "" {
			cfg.Events.Topic = "kv@" + addr + "@" + c.Model
		}
	}
	e, err := emulator.New(cfg)
	return e, coefs, err
}

// rank is one data-parallel rank: an engine with ports of its own.
type rank struct {
	emulator            *emulator.Emulator
	coefs               *engine.Coefs
	web, events, replay net.Listener
}

func (c *emulateCommand) open(ctx context.Context, i int) (*rank, error) {
	r := &rank{}
	var err error
	if r.web, err = c.listen(ctx, "--port", c.Port, i); err != nil {
		return nil, err
	}
	if c.Events != 0 {
		if r.events, err = c.listen(ctx, "--events", c.Events, i); err != nil {
			r.close()
			return nil, err
		}
	}
	if c.Replay != 0 {
		if r.replay, err = c.listen(ctx, "--replay", c.Replay, i); err != nil {
			r.close()
			return nil, err
		}
	}
	r.emulator, r.coefs, err = c.make(i, r.web.Addr().String())
	return r, err
}

// listen opens a rank's port; 0 is a free one for every rank.
func (c *emulateCommand) listen(ctx context.Context, flag string, port, rank int) (net.Listener, error) {
	if port != 0 {
		port += rank
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %d: in use by another process; free it or choose another", flag, port)
	case err != nil:
		return nil, fmt.Errorf("--host %s: %w; write an address of this machine", c.Host, err)
	}
	return l, nil
}

// run serves until ctx ends.
func (r *rank) run(ctx context.Context) error {
	srv := &http.Server{Handler: r.emulator, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { r.emulator.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		_ = srv.Close()
	})
	var events error
	if r.events != nil {
		running.Go(func() {
			defer cancel()
			events = r.emulator.ServeEvents(ctx, r.events, r.replay)
		})
	}
	err := srv.Serve(r.web)
	cancel()
	running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, events)
}

// close closes what is listened on; what is closed already stays so.
func (r *rank) close() {
	for _, l := range []net.Listener{r.web, r.events, r.replay} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// Help tells what flags cannot.
func (*emulateCommand) Help() string {
	return `Faults: curl -d '{"kind":"slow","factor":3}' http://127.0.0.1:8101/emulator/fault
Kinds: slow (factor), stall (seconds), fail (share), blind, see, kill, revive, drop, take.`
}
