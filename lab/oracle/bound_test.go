package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/engine"
)

// TestNobodyBeatsTheBound: on random fleets, workloads and SLOs, most of which cannot all be met.
func TestNobodyBeatsTheBound(t *testing.T) {
	binding := 0
	rapid.Check(t, func(rt *rapid.T) {
		rate := rapid.IntRange(2, 40).Draw(rt, "rate")
		text := fmt.Sprintf(`
name: random
about: for a bound
origin: this test
expects: nothing
duration: 4s
warmup: %ds
loads: [1]
fleet:
  - {count: %d, gpu: H100, model: llama-3.1-8b, tp: 1}
  - {count: %d, gpu: L40S, model: llama-3.1-8b, tp: 1}
slo: {ttft: %dms, itl: %dms}
traffic:
  - class: a
    arrivals: [{poisson: {rate: %d}}]
    prefix: [{groups: %d, tokens: %d}]
    prompt: {lognormal: {mean: %d, sigma: 1, max: 20000}}
    output: {lognormal: {mean: %d, sigma: 0.8, max: 1000}}
`, rapid.IntRange(0, 2).Draw(rt, "warmup"), rapid.IntRange(1, 2).Draw(rt, "h100"), rapid.IntRange(1, 2).Draw(rt, "l40s"),
			rapid.IntRange(15, 800).Draw(rt, "ttft"), rapid.IntRange(5, 40).Draw(rt, "itl"),
			rate, rapid.IntRange(1, 8).Draw(rt, "groups"), rapid.IntRange(16, 8000).Draw(rt, "shared"),
			rapid.IntRange(20, 6000).Draw(rt, "prompt"), rapid.IntRange(1, 200).Draw(rt, "output"))
		a, seed := arena(t, text), rapid.Uint64Range(1, 1000).Draw(rt, "seed")
		b, err := Upper(a, 1, seed)
		if err != nil {
			rt.Fatal(err)
		}
		if b.Attainment > b.Alone {
			rt.Fatalf("%+v", b)
		}
		if b.Attainment < 1 {
			binding++
		}
		policy := rapid.SampledFrom([]string{"clairvoyant", "predictive", "round-robin", "llmd-weighted", "least-request"}).Draw(rt, "policy")
		r, err := a.Play(policy, 1, seed)
		if err != nil {
			rt.Fatal(err)
		}
		if r.Requests != b.Requests || r.Attainment > b.Attainment {
			rt.Fatalf("%s attains %v of %d requests, the bound is %+v", policy, r.Attainment, r.Requests, b)
		}
	})
	if binding < 5 {
		t.Errorf("only %d of the cases have a bound below 1", binding)
	}
}

// TestFloors: no batch takes less than the floor of its parts, and no request less than its floor on an
// idle engine.
func TestFloors(t *testing.T) {
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		cfg := engine.Config{Coefs: rapid.SampledFrom(table).Draw(t, "engine"), Slowdown: rapid.SampledFrom([]float64{0, 0.5, 3}).Draw(t, "slowdown")}
		e, err := engine.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg = e.Config()
		f := floorOf(&cfg)
		var chunks [][2]int
		room, least := cfg.MaxBatched, 0.0
		decodes := rapid.IntRange(0, min(room, cfg.MaxSeqs)).Draw(t, "decodes")
		context := rapid.IntRange(decodes, 2000*decodes+1).Draw(t, "context")
		room -= decodes
		least += float64(decodes)*(f.rate+f.seq) + f.kv*float64(context)
		for range rapid.IntRange(0, 3).Draw(t, "chunks") {
			if room < 1 {
				break
			}
			c := [2]int{rapid.IntRange(1, room).Draw(t, "chunk"), rapid.IntRange(0, 30000).Draw(t, "after")}
			q, ctx := float64(c[0]), float64(c[1])
			least += (f.rate+f.lin)*q + f.quad*q*(ctx+q/2)
			room -= c[0]
			chunks = append(chunks, c)
		}
		if got := e.StepTime(decodes, context, chunks...) / 1e6; got < least*(1-slack) {
			t.Fatalf("a step of %v s, its parts cost %v s", got, least)
		}
		r := demand{prompt: rapid.IntRange(1, 20000).Draw(t, "prompt"), output: rapid.IntRange(1, 300).Draw(t, "output")}
		r.uncached = r.prompt
		if (r.prompt+r.output)/blockTokens+2 > cfg.Blocks {
			return
		}
		if _, err := e.Submit(0, &engine.Request{PromptTokens: r.prompt, OutputTokens: r.output}); err != nil {
			t.Fatal(err)
		}
		var first, end time.Duration
		for due, ok := e.Next(); ok; due, ok = e.Next() {
			for _, ev := range e.Advance(due) {
				if ev.Kind == engine.FirstToken {
					first = ev.At
				}
				end = max(end, ev.At)
			}
		}
		if got, least := first.Seconds(), f.first(&r)*(1-slack); got < least {
			t.Fatalf("a first token after %v s, the floor is %v s", got, least)
		}
		if got, least := (end - first).Seconds(), f.gap(&r)*(1-slack)*float64(r.output-1); got < least {
			t.Fatalf("an answer of %v s, the floor is %v s", got, least)
		}
	})
}

// TestBoundCounts: of equal requests as many are met as the pool has seconds for, and those that no
// engine can serve in time are not met.
func TestBoundCounts(t *testing.T) {
	f := floor{budget: 1e9, lin: 1e-3} // a second for a thousand tokens
	pool := []kind{{states: []floor{f}, engines: 2, weight: 1}}
	var all []demand
	for range 20 { // at once: two engines have 3 seconds each
		all = append(all, demand{prompt: 1000, output: 1, uncached: 1000, slo: request.SLO{TTFT: 3 * time.Second}})
	}
	if b := bound(pool, all, 0, 0); b.Requests != 20 || b.Alone != 1 || b.Attainment != 0.3 {
		t.Errorf("%+v", b)
	}
	for i := range 5 {
		all[i].prompt, all[i].uncached = 4000, 4000
	}
	all[19].slo = request.SLO{} // carries none
	if b := bound(pool, all, 0, 0); b.Alone != 0.75 || b.Attainment != 0.35 {
		t.Errorf("%+v", b)
	}
	if b := bound(pool, all, time.Second, 0); b.Requests != 0 || b.Attainment != 0 {
		t.Errorf("nobody is counted: %+v", b)
	}
}

// TestNoBoundWhereArrivalsDepend: conversations are refused with the reason.
func TestNoBoundWhereArrivalsDepend(t *testing.T) {
	_, err := Upper(named(t, "codechat"), 1, 1)
	if err == nil || !strings.Contains(err.Error(), "codechat at 1, seed 1: no bound: clients wait for answers") {
		t.Errorf("error %v", err)
	}
}
