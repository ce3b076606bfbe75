package main

import (
	"fmt"
	"os"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/lab/bench"
)

// benchCommand groups the benchmarks. Each is in a file of its own.
type benchCommand struct {
	Decide  benchDecideCommand  `cmd:"" help:"Cost of one decision, in process."`
	Extproc benchExtprocCommand `cmd:"" help:"CPU and time per request of the service, over gRPC."`
	Idle    benchIdleCommand    `cmd:"" help:"CPU of a service that only scrapes its engines."`
	Sim     benchSimCommand     `cmd:"" help:"Speed of the simulator."`
	Soak    benchSoakCommand    `cmd:"" help:"Many streaming clients through Envoy, some of which leave early."`
	Child   benchChildCommand   `cmd:"" hidden:"" help:"The service under test; the other commands start it."`
}

// self is how this program starts itself as the service under test.
func self() (bench.Program, error) {
	path, err := os.Executable()
	if err != nil {
		return bench.Program{}, fmt.Errorf("cannot find this program to start it again: %w", err)
	}
	return bench.Program{Path: path, Args: []string{"bench", "child"}}, nil
}

// within checks a count or size of a flag.
func within(flag string, v, least, most int) error {
	if v < least || v > most {
		return command.Usage(fmt.Errorf("--%s %d: not from %d to %d", flag, v, least, most))
	}
	return nil
}

func longEnough(d time.Duration) error {
	if d < 100*time.Millisecond {
		return command.Usage(fmt.Errorf("--duration %v: too short to measure anything; write 100ms or more", d))
	}
	return nil
}
