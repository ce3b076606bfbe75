package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/telemetry"
)

type serveCommand struct {
	Config string `short:"c" required:"" placeholder:"FILE" help:"Configuration file; changes to it take effect at once."`
	Log    string `enum:"text,json" default:"text" help:"Form of the log on stderr: text or json."`
}

// Run serves until a signal: the first drains, a second one ends the service at once.
func (c *serveCommand) Run(t *terminal.Terminal) error {
	cfg, warnings, err := config.Load(c.Config, serve.Policies().Names())
	for _, w := range warnings {
		fmt.Fprintln(t.Err, w)
	}
	if err == nil {
		err = serve.CheckFiles(cfg)
	}
	if err != nil {
		return command.Usage(err)
	}
	level := new(slog.LevelVar)
	log, err := telemetry.NewLogger(t.Err, c.Log, level)
	if err != nil {
		return command.Usage(err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	s, err := serve.New(cfg, serve.Deps{Log: log, Level: level, Path: c.Config})
	if err != nil {
		return err
	}
	drain, begin := context.WithCancelCause(context.Background())
	defer begin(nil)
	over := make(chan struct{})
	go func() {
		defer close(over)
		obey(signals, s, begin)
	}()
	err = s.Run(drain)
	signal.Stop(signals)
	close(signals)
	<-over
	if err == nil && errors.Is(context.Cause(drain), context.Canceled) {
		return context.Canceled
	}
	return err
}

// errTerminated is the cause of an orderly end.
var errTerminated = errors.New("terminated")

// obey acts on signals until the channel is closed.
func obey(signals <-chan os.Signal, s *serve.Service, drain context.CancelCauseFunc) {
	draining := false
	for sig := range signals {
		switch {
		case sig == syscall.SIGHUP:
			_ = s.Reload() // reported in the log
		case draining:
			s.Stop()
		default:
			draining = true
			cause := errTerminated
			if sig == os.Interrupt {
				cause = context.Canceled
			}
			drain(cause)
		}
	}
}
