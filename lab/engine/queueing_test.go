package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// flow runs an engine under Poisson arrivals of equal requests and returns, per request, the time
// from submission to the end.
func flow(t *testing.T, e *Engine, rate float64, n int, r Request, sample func(now time.Duration)) []time.Duration {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	start := make([]time.Duration, n)
	took := make([]time.Duration, n)
	see := func(events []Event) {
		for _, ev := range events {
			if ev.Kind == Finished {
				took[ev.ID] = ev.At - start[ev.ID]
			}
		}
	}
	at := time.Duration(0)
	for i := range n {
		at += time.Duration(rng.ExpFloat64() / rate * 1e9)
		for due, ok := e.Next(); ok && due <= at; due, ok = e.Next() {
			see(e.Advance(due))
		}
		if sample != nil {
			sample(at)
		}
		start[i], r.ID = at, uint64(i)
		if _, err := e.Submit(at, &r); err != nil {
			t.Fatal(err)
		}
	}
	for due, ok := e.Next(); ok; due, ok = e.Next() {
		see(e.Advance(due))
	}
	return took
}

func mean(d []time.Duration) float64 {
	s := 0.0
	for _, v := range d {
		s += v.Seconds()
	}
	return s / float64(len(d))
}

// TestOneTokenAnswersOneAtATimeAreMD1: with one place in the batch and answers of one token the engine
// is a single server with constant service time, whose mean wait Pollaczek and Khinchine give.
func TestOneTokenAnswersOneAtATimeAreMD1(t *testing.T) {
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		e := h100(t, func(c *Config) {
			c.Profile = Profile{Name: "bare", Step: 1}
			c.MaxSeqs = 1
		})
		service := e.StepTime(0, 0, [2]int{600, 0}) / 1e6
		took := flow(t, e, rho/service, 200000, Request{PromptTokens: 600, OutputTokens: 1}, nil)
		want := rho * service / (2 * (1 - rho))
		if got := mean(took) - service; math.Abs(got-want) > 0.03*want {
			t.Errorf("rho %v: mean wait %.4f s, M/D/1 says %.4f s", rho, got, want)
		}
	}
}

// TestLittlesLaw: the mean number of requests seen at regular instants is the arrival rate times the
// mean time in the system.
func TestLittlesLaw(t *testing.T) {
	const rate, n = 20, 20000
	for _, single := range []bool{false, true} {
		e := h100(t, func(c *Config) { c.SingleStep = single })
		// Arrivals are Poisson, so they see time averages.
		var sum, samples float64
		took := flow(t, e, rate, n, Request{PromptTokens: 700, OutputTokens: 200}, func(time.Duration) {
			sum += float64(e.stats.Submitted - e.stats.Completed)
			samples++
		})
		if got, want := sum/samples, rate*mean(took); math.Abs(got-want) > 0.02*want {
			t.Errorf("%.2f requests in the system, rate x time is %.2f", got, want)
		}
	}
}

// TestClosedLoopThroughput: users who all ask again at once run in step, so throughput is their
// number over one cycle of prefill and decode steps.
func TestClosedLoopThroughput(t *testing.T) {
	const users, prompt, output, rounds = 8, 500, 100, 20
	e := h100(t, func(c *Config) { c.Profile = Sync() })
	cycle := 0.0
	var chunks [][2]int
	for range users {
		chunks = append(chunks, [2]int{prompt, 0})
	}
	cycle += e.StepTime(0, 0, chunks...)
	for k := range output - 1 {
		cycle += e.StepTime(users, users*(prompt+k))
	}
	for u := range users {
		if _, err := e.Submit(0, &Request{ID: uint64(u), PromptTokens: prompt, OutputTokens: output}); err != nil {
			t.Fatal(err)
		}
	}
	done := 0
	var last time.Duration
	for due, ok := e.Next(); ok; due, ok = e.Next() {
		for _, ev := range e.Advance(due) {
			if ev.Kind != Finished {
				continue
			}
			last = ev.At
			if done++; done <= users*(rounds-1) {
				if _, err := e.Submit(ev.At, &Request{ID: ev.ID, PromptTokens: prompt, OutputTokens: output}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want := rounds * (cycle/1e6 + Sync().Frontend.Seconds())
	if got := last.Seconds(); math.Abs(got-want) > 1e-6*want {
		t.Errorf("%d rounds take %.6f s, want %.6f s", rounds, got, want)
	}
}

// TestFirstTokenAtZeroLoad: frontend and one step when idle; behind a running request also the rest
// of the step under way and, with asynchronous scheduling, the step after it.
func TestFirstTokenAtZeroLoad(t *testing.T) {
	for _, p := range []Profile{Async(), Sync()} {
		e := h100(t, func(c *Config) { c.Profile = p })
		if _, err := e.Submit(0, &Request{ID: 1, PromptTokens: 1000, OutputTokens: 400}); err != nil {
			t.Fatal(err)
		}
		first := map[uint64]time.Duration{}
		see := func(events []Event) {
			for _, ev := range events {
				if ev.Kind == FirstToken {
					first[ev.ID] = ev.At
				}
			}
		}
		see(e.Advance(time.Second))
		step := e.StepTime(0, 0, [2]int{1000, 0})
		if got, want := first[1], p.Frontend+micros(step); got != want {
			t.Errorf("%s: idle engine: first token after %v, want %v", p.Name, got, want)
		}

		end, _ := e.Next() // of all: nothing else happens
		if end < 2*time.Second {
			t.Fatalf("the first request ends at %v", end)
		}
		at := time.Second
		if _, err := e.Submit(at, &Request{ID: 2, PromptTokens: 10, OutputTokens: 1}); err != nil {
			t.Fatal(err)
		}
		// The boundaries of the steps around the arrival, from the first token on.
		bound, k := first[1], 0
		for ; bound < at+p.Frontend; k++ {
			bound += micros(e.StepTime(1, 1000+k))
		}
		if p.Lag > 0 {
			bound += micros(e.StepTime(1, 1000+k))
			k++
		}
		want := bound + micros(e.StepTime(1, 1000+k, [2]int{10, 0}))
		for due, ok := e.Next(); ok; due, ok = e.Next() {
			see(e.Advance(due))
		}
		if got := first[2]; got < want-time.Duration(k) || got > want+time.Duration(k) {
			t.Errorf("%s: behind another: first token at %v, want %v", p.Name, got, want)
		}
	}
}

func micros(us float64) time.Duration { return time.Duration(math.Ceil(us * 1000)) }
