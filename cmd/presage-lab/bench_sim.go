package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/cluster"
)

type benchSimCommand struct {
	Requests int    `default:"300000" help:"Requests to simulate (${default})."`
	Step     string `enum:"macro,token" default:"macro" help:"Steps: macro, many at once where nothing can happen, or token, each by itself."`
	Seed     uint64 `default:"1" help:"Of the arrivals (${default})."`
	JSON     bool   `name:"json" help:"Print one JSON object on the last line."`
}

// simSpeed is the result as JSON.
type simSpeed struct {
	Requests          uint64  `json:"requests"`
	Step              string  `json:"step"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	EventsPerSecond   float64 `json:"events_per_second"`
}

// Run simulates the workload of [cluster.Speed] on one core and tells how fast. Seconds are those of CPU
// time: what else the machine does is no property of the simulator.
func (c *benchSimCommand) Run(t *terminal.Terminal) error {
	if err := within("requests", c.Requests, 1000, 1<<30); err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a figure per core, garbage collection included
	began, err := cpuTime()
	if err != nil {
		return err
	}
	r, err := cluster.Speed(c.Requests, c.Seed, c.Step == "token")
	if err != nil {
		return err
	}
	ended, err := cpuTime()
	if err != nil {
		return err
	}
	s := max(ended-began, time.Microsecond).Seconds()
	out := simSpeed{Requests: r.Requests, Step: c.Step, RequestsPerSecond: float64(r.Requests) / s, EventsPerSecond: float64(r.Events) / s}
	t.Result("%d requests on 8 engines, %s steps: %.0f requests and %.0f events a second of one core", out.Requests, out.Step, out.RequestsPerSecond, out.EventsPerSecond)
	if c.JSON {
		return t.JSON(out)
	}
	return nil
}

// cpuTime is what this process has used.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time used: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
