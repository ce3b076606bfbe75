package calibrate

import (
	"fmt"
	"math"
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// Request is one recorded request of one engine.
type Request struct {
	At             time.Duration // since the first request of the run
	Prompt, Output int           // tokens
	Blocks         []uint64      // chain of 16-token blocks; nil: nothing is shared
}

// Latency is what became of a request, in seconds; NaN where there is none.
type Latency struct {
	Queue, TTFT, ITL, E2E float64
}

// none is the latency of a request that was not answered.
func none() Latency {
	return Latency{Queue: math.NaN(), TTFT: math.NaN(), ITL: math.NaN(), E2E: math.NaN()}
}

// Replay sends the requests, in order of time, to an engine of the configuration and returns their
// latencies. Requests that the engine can never hold have none. The error is of the configuration.
func Replay(cfg engine.Config, requests []Request) ([]Latency, error) {
	e, err := engine.New(cfg)
	if err != nil {
		return nil, err
	}
	frontend := e.Config().Profile.Frontend
	out := make([]Latency, len(requests))
	first := make([]time.Duration, len(requests))
	take := func(events []engine.Event) {
		for _, ev := range events {
			r, l := &requests[ev.ID], &out[ev.ID]
			switch ev.Kind {
			case engine.Scheduled:
				l.Queue = (ev.At - r.At - frontend).Seconds()
			case engine.FirstToken:
				first[ev.ID] = ev.At
				l.TTFT = (ev.At - r.At).Seconds()
			case engine.Finished:
				l.E2E = (ev.At - r.At).Seconds()
				if r.Output > 1 {
					l.ITL = (ev.At - first[ev.ID]).Seconds() / float64(r.Output-1)
				}
			case engine.Allocated, engine.Progress, engine.Preempted, engine.Failed:
			}
		}
	}
	for i := range requests {
		r := &requests[i]
		out[i] = none()
		if i > 0 && r.At < requests[i-1].At {
			return nil, fmt.Errorf("request %d arrives before the one before it", i)
		}
		take(e.Advance(r.At))
		// An impossible request is refused, as a server does; its latencies stay unknown.
		_, _ = e.Submit(r.At, &engine.Request{ID: uint64(i), PromptTokens: r.Prompt, OutputTokens: r.Output, Blocks: r.Blocks})
	}
	for due, ok := e.Next(); ok; due, ok = e.Next() {
		take(e.Advance(due))
	}
	return out, nil
}

// ClosedLoop keeps so many equal unshared requests open and returns the mean TTFT and the mean time
// per output token, in seconds, of the steady state: clients start spread over one answer, so that
// their prefills do not coincide, and the first round is not counted.
func ClosedLoop(cfg engine.Config, clients, prompt, output int) (ttft, tpot float64, err error) {
	e, err := engine.New(cfg)
	if err != nil {
		return 0, 0, err
	}
	const rounds = 4 // counted
	type request struct{ sent, first time.Duration }
	sent := make([]request, 0, clients*(rounds+2))
	submit := func(now time.Duration, output int) error {
		sent = append(sent, request{sent: now})
		_, err := e.Submit(now, &engine.Request{ID: uint64(len(sent) - 1), PromptTokens: prompt, OutputTokens: output})
		return err
	}
	for i := range clients {
		if err := submit(0, max(1, output*(i+1)/clients)); err != nil {
			return 0, 0, err
		}
	}
	var ttfts, tpots float64
	n := 0
	for n < rounds*clients {
		due, ok := e.Next()
		if !ok {
			return 0, 0, fmt.Errorf("the engine stands still with %d clients", clients)
		}
		for _, ev := range e.Advance(due) {
			r := &sent[ev.ID]
			if ev.Kind == engine.FirstToken {
				r.first = ev.At
			}
			if ev.Kind != engine.Finished {
				continue
			}
			if ev.ID >= uint64(2*clients) {
				ttfts += (r.first - r.sent).Seconds()
				tpots += (ev.At - r.first).Seconds() / float64(max(1, output-1))
				n++
			}
			if err := submit(ev.At, output); err != nil {
				return 0, 0, err
			}
		}
	}
	return ttfts / float64(n), tpots / float64(n), nil
}
