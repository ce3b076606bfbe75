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

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/emulator"
	"github.com/presage-router/presage/lab/engine"
)

type emulateCommand struct {
	GPU   string `required:"" placeholder:"GPU" help:"GPU type: H100, H200, A100, L40S or B200." group:"Engine"`
	Model string `required:"" help:"Model, as llama-3.1-8b." group:"Engine"`
	TP    int    `name:"tp" default:"0" help:"Tensor-parallel width; 0: the narrowest known." group:"Engine"`

	Blocks     int      `default:"0" help:"KV blocks of 16 tokens; 0: what the GPU's memory holds." group:"Engine"`
	MaxSeqs    int      `default:"0" help:"Requests in a batch; 0: vLLM's default for the GPU." group:"Engine"`
	MaxBatched int      `default:"0" help:"Tokens in a batch; 0: vLLM's default for the GPU." group:"Engine"`
	Adapters   []string `placeholder:"NAME,..." help:"LoRA adapters that are loaded." group:"Engine"`
	Speed      float64  `default:"1" help:"Engine seconds per second." group:"Engine"`

	Host    string        `default:"127.0.0.1" help:"Address to listen on." group:"Server"`
	Port    int           `default:"8101" help:"Port to listen on; 0: a free one." group:"Server"`
	Dialect string        `enum:"vllm,sglang" default:"vllm" help:"Whose metrics page to serve: vllm or sglang." group:"Server"`
	Load    time.Duration `default:"0s" help:"Time until the model is loaded; requests get 503 before." group:"Server"`
}

// Run serves until a signal.
func (c *emulateCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	e, coefs, err := c.emulator()
	if err != nil {
		return usageError{err}
	}
	if c.Port < 0 || c.Port > 65535 {
		return usageError{fmt.Errorf("--port %d: no port; write one from 0 to 65535", c.Port)}
	}
	addr := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--port %d: in use by another process; free it or choose another", c.Port)
	case err != nil:
		return fmt.Errorf("--host %s: %w; write an address of this machine", c.Host, err)
	}
	t.Note("emulating %s on http://%s, %d KV blocks, %s metrics", coefs, l.Addr(), e.Stats().Blocks, c.Dialect)
	srv := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	var running sync.WaitGroup
	running.Go(func() { e.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		_ = srv.Close()
	})
	err = srv.Serve(l)
	stop()
	running.Wait()
	if late := e.Lateness(); late.Steps > 0 {
		t.Note("steps %d, late by %.2f ms p50, %.2f ms p99", late.Steps, late.P50.Seconds()*1e3, late.P99.Seconds()*1e3)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return ctx.Err()
	}
	return err
}

// emulator makes the engine that the flags describe.
func (c *emulateCommand) emulator() (*emulator.Emulator, *engine.Coefs, error) {
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
	e, err := emulator.New(emulator.Config{
		Engine: engine.Config{Coefs: *coefs, Blocks: c.Blocks, MaxSeqs: c.MaxSeqs, MaxBatched: c.MaxBatched},
		Model:  c.Model, Adapters: c.Adapters, Speed: c.Speed, Dialect: dialect, Load: c.Load,
	})
	return e, coefs, err
}
