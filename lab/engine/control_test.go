package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConfigRefuses(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"block size -1":                func(c *Config) { c.BlockSize = -1 },
		"blocks 1":                     func(c *Config) { c.Blocks = 1 },
		"max seqs -3":                  func(c *Config) { c.MaxSeqs = -3 },
		"max batched tokens 4":         func(c *Config) { c.MaxSeqs, c.MaxBatched = 8, 4 },
		"watermark 2":                  func(c *Config) { c.Watermark = 2 },
		"slowdown -1":                  func(c *Config) { c.Slowdown = -1 },
		"noise 3":                      func(c *Config) { c.Noise = 3 },
		"adapter slots -1":             func(c *Config) { c.MaxLoRA = -1 },
		"progress every -1":            func(c *Config) { c.Progress = -1 },
		"neither 0 nor 1":              func(c *Config) { c.Profile = Profile{Lag: 2} },
		"frontend -1s":                 func(c *Config) { c.Profile = Profile{Frontend: -time.Second} },
		"0 knots":                      func(c *Config) { c.Coefs.Knots, c.Coefs.G = nil, nil },
		"long prefill threshold -5":    func(c *Config) { c.LongPrefill = -5 },
		"kernel factor -1":             func(c *Config) { c.Kernel = -1 },
		"adapter load times -1ns, 5ms": func(c *Config) { c.LoRASwap, c.LoRACold = -1, 5*time.Millisecond },
	} {
		cfg := Config{Coefs: tiny()}
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestSubmitRefuses(t *testing.T) {
	e := h100(t, func(c *Config) { c.Blocks = 11 })
	for _, c := range []struct {
		prompt, output int
		want           error
	}{
		{0, 1, ErrInvalid}, {1, 0, ErrInvalid}, {-5, 1, ErrInvalid}, {161, 1, ErrTooLong}, {1, 161, ErrTooLong}, {1 << 60, 1 << 60, ErrTooLong}, {160, 1, nil},
	} {
		if _, err := e.Submit(0, &Request{PromptTokens: c.prompt, OutputTokens: c.output}); !errors.Is(err, c.want) {
			t.Errorf("%d+%d tokens: %v, want %v", c.prompt, c.output, err, c.want)
		}
	}
	e.Kill(time.Second)
	if _, err := e.Submit(time.Second, &Request{PromptTokens: 1, OutputTokens: 1}); !errors.Is(err, ErrDead) {
		t.Errorf("dead engine: %v", err)
	}
}

// TestDeathFailsEverything kills an engine with a request in every stage and revives it.
func TestDeathFailsEverything(t *testing.T) {
	e := h100(t, func(c *Config) { c.MaxSeqs = 2; c.KVEvents = true; c.Progress = 1 })
	submit := func(at time.Duration, r Request) Handle {
		h, err := e.Submit(at, &r)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	blocks := []uint64{1, 2, 3, 4}
	h := submit(0, Request{ID: 1, PromptTokens: 64, OutputTokens: 1000, Blocks: blocks})
	submit(0, Request{ID: 2, PromptTokens: 90000, OutputTokens: 10})
	submit(0, Request{ID: 3, PromptTokens: 10, OutputTokens: 10})
	e.Advance(100 * time.Millisecond)
	submit(100*time.Millisecond, Request{ID: 4, PromptTokens: 10, OutputTokens: 10})
	var told int32
	for _, ev := range e.Advance(103 * time.Millisecond) {
		if ev.ID == 1 {
			told = ev.N
		}
	}
	got := map[uint64]int32{}
	for _, ev := range e.Kill(103 * time.Millisecond) {
		if ev.Kind != Failed || ev.At != 103*time.Millisecond {
			t.Errorf("%+v", ev)
		}
		got[ev.ID] = ev.N
	}
	if diff := cmp.Diff(map[uint64]int32{1: max(told, got[1]), 2: 0, 3: 0, 4: 0}, got); diff != "" {
		t.Error(diff)
	}
	if kv := e.KVEvents(); len(kv) != 1 || kv[0].Kind != Cleared {
		t.Errorf("KV events %v", kv)
	}
	if _, ok := e.Next(); ok || len(e.Advance(time.Minute)) > 0 || e.Cancel(time.Minute, h) || len(e.Kill(time.Minute)) > 0 {
		t.Error("a dead engine is up to something")
	}
	e.Revive(2 * time.Minute)
	submit(2*time.Minute, Request{ID: 5, PromptTokens: 65, OutputTokens: 1, Blocks: blocks})
	log := e.Advance(3 * time.Minute)
	if len(log) != 3 || log[0].Kind != Scheduled || log[0].N != 0 || log[2].Kind != Finished {
		t.Errorf("after revival: %+v", log)
	}
	if err := e.audit(); err != nil {
		t.Error(err)
	}
}

func TestStallDelaysTheStepUnderWay(t *testing.T) {
	end := func(stall time.Duration, at time.Duration) time.Duration {
		e := h100(t, nil)
		if _, err := e.Submit(0, &Request{PromptTokens: 100, OutputTokens: 20}); err != nil {
			t.Fatal(err)
		}
		e.Advance(at)
		e.Stall(at, stall)
		var last time.Duration
		for due, ok := e.Next(); ok; due, ok = e.Next() {
			for _, ev := range e.Advance(due) {
				last = ev.At
			}
		}
		return last
	}
	if got, want := end(30*time.Second, 50*time.Millisecond), 30*time.Second+end(0, 50*time.Millisecond); got != want {
		t.Errorf("busy engine: ends at %v, want %v", got, want)
	}
	if got, want := end(30*time.Second, 0), 30*time.Second-Async().Frontend+end(0, 0); got != want {
		t.Errorf("idle engine: ends at %v, want %v", got, want)
	}
}

// TestThreeTimesSlower: a slowdown of 3 makes everything after the step under way last 3 times as long.
func TestThreeTimesSlower(t *testing.T) {
	e := h100(t, nil)
	normal := [2]float64{e.StepTime(10, 5000), e.StepTime(3, 100, [2]int{512, 0})}
	if err := e.SetSlowdown(3); err != nil {
		t.Fatal(err)
	}
	for i, got := range [2]float64{e.StepTime(10, 5000), e.StepTime(3, 100, [2]int{512, 0})} {
		if r := got / normal[i]; r < 2.9999 || r > 3.0001 {
			t.Errorf("step takes %v times as long", r)
		}
	}
	if err := e.SetSlowdown(0); err == nil {
		t.Error("slowdown 0 accepted")
	}
}

// TestPrefillAndDecodeElsewhere: KV made on one engine is used on another; blocks are held until the
// transfer is over, and freed once.
func TestPrefillAndDecodeElsewhere(t *testing.T) {
	blocks := make([]uint64, 70)
	for i := range blocks {
		blocks[i] = uint64(1000 + i)
	}
	run := func(e *Engine, now time.Duration) (time.Duration, []Event) {
		var log []Event
		for due, ok := e.Next(); ok; due, ok = e.Next() {
			now = max(now, due)
			log = append(log, e.Advance(due)...)
		}
		return now, log
	}
	p, d := h100(t, nil), h100(t, nil)
	hp, err := p.Submit(0, &Request{ID: 1, PromptTokens: 1000, OutputTokens: 1, Blocks: blocks, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	now, _ := run(p, 0)
	if p.cache.held() != 63 {
		t.Fatalf("prefill side holds %d blocks", p.cache.held())
	}
	hd, err := d.Submit(now, &Request{ID: 1, PromptTokens: 1000, OutputTokens: 100, Blocks: blocks, Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	now, log := run(d, now)
	if len(log) != 1 || log[0].Kind != Allocated || log[0].N != 1000 || d.cache.held() != 63 {
		t.Fatalf("decode side: %+v, holds %d blocks", log, d.cache.held())
	}
	if !p.Release(now, hp) || p.Release(now, hp) || p.cache.held() != 0 {
		t.Error("blocks are not freed once")
	}
	if !d.Deliver(now, hd) || d.Deliver(now, hd) {
		t.Error("KV is not delivered once")
	}
	at := now
	_, log = run(d, now)
	if log[0].Kind != FirstToken || log[0].At-at != micros(d.StepTime(0, 0, [2]int{1, 999})) {
		t.Errorf("first token %v after delivery: %+v", log[0].At-at, log[0])
	}
	if last := log[len(log)-1]; last.Kind != Finished || last.N != 100 {
		t.Errorf("%+v", last)
	}
	if f := d.cache.match(blocks, 70); f.depth != 68 {
		t.Errorf("%d blocks cached on the decode side, want 68", f.depth)
	}
}

func TestAdaptersWaitForASlotAndBlockNobody(t *testing.T) {
	e := h100(t, func(c *Config) { c.MaxLoRA = 1 })
	for i, a := range []int32{1, 2, 0, 1} {
		if _, err := e.Submit(0, &Request{ID: uint64(i), PromptTokens: 10, OutputTokens: 50, Adapter: a}); err != nil {
			t.Fatal(err)
		}
	}
	e.Advance(600 * time.Millisecond)
	running, waiting := e.Adapters(nil, nil)
	var s Stats
	e.Stats(&s)
	if diff := cmp.Diff([][]int32{{1}, {2}}, [][]int32{running, waiting}); diff != "" {
		t.Error(diff)
	}
	if s.Completed != 1 || s.Running != 2 || s.Waiting != 1 || s.WaitingDeferred != 1 {
		t.Errorf("the request without adapter is done, two run: %+v", s)
	}
	for due, ok := e.Next(); ok; due, ok = e.Next() {
		e.Advance(due)
	}
	e.Stats(&s)
	if s.Completed != 4 || s.AdapterLoads != 2 {
		t.Errorf("%+v", s)
	}
}

func TestNoAllocationInSteadyState(t *testing.T) {
	e := h100(t, func(c *Config) { c.Progress = 1; c.KVEvents = true; c.Blocks = 2000 })
	chains := make([]uint64, 1<<16)
	for i := range chains {
		chains[i] = uint64(i + 1)
	}
	now, k := time.Duration(0), 0
	turn := func() {
		now += 90 * time.Millisecond
		e.Advance(now)
		at := k % (len(chains) / 64) * 64
		if _, err := e.Submit(now, &Request{ID: uint64(k), PromptTokens: 400, OutputTokens: 500, Blocks: chains[at : at+56]}); err != nil {
			t.Fatal(err)
		}
		k++
	}
	for range 5000 {
		turn()
	}
	if n := testing.AllocsPerRun(5000, turn); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
	var s Stats
	if e.Stats(&s); s.Evictions == 0 || s.Preemptions == 0 {
		t.Errorf("no KV pressure in this test: %+v", s)
	}
}
