package predictive

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

var t0 = time.Unix(1_000_000, 0)

// newQuery makes a query of 6,400 prompt tokens over n idle equal endpoints, all of them candidates,
// every one foretold alike.
func newQuery(n int) (*router.Query, []features.Forecast) {
	req := &request.Request{Model: "demo", PromptTokens: 6400, PromptBytes: 25_600, BlockSize: 256, Choices: 1}
	q := &router.Query{
		Now: t0, Req: req, Snap: &fleet.Snapshot{At: t0, Slots: n}, Hits: make([]int32, n),
		Keep: make([]bool, n), Out: make([]string, n), Rand: rand.New(rand.NewPCG(7, 7)), Tie: 1,
	}
	fore := make([]features.Forecast, n)
	for i := range n {
		q.Keep[i] = true
		q.Snap.States = append(q.Snap.States, fleet.State{
			Endpoint: &fleet.Endpoint{Name: fmt.Sprintf("e%d", i), Model: "demo"}, Slot: i, Instance: uint64(i + 1), Since: t0.Add(-time.Hour),
			Load: new(fleet.Load),
		})
		fore[i] = features.Forecast{
			TTFT:  features.Prediction{Mean: .2, P50: .2, P90: .3, P99: .5},
			ITL:   features.Prediction{Mean: .02, P50: .02, P90: .03, P99: .05},
			Price: features.Price{First: .2, Prefill: .15, Decode: 6, Gap: .02, Sigma: .08},
		}
	}
	q.Suppose(fore)
	return q, fore
}

// anyQuery draws a query: endpoints with some streams, some of the prompt cached, some no candidates,
// times between 1 ms and 100 s.
func anyQuery(t *rapid.T, n int) (*router.Query, []features.Forecast) {
	q, fore := newQuery(n)
	ms := rapid.OneOf(rapid.Float32Range(1, 10), rapid.Float32Range(1, 100_000), rapid.SampledFrom([]float32{100, 200}))
	q.Tie = rapid.Uint64().Draw(t, "tie")
	q.Req.Choices = rapid.IntRange(0, 3).Draw(t, "choices")
	for i := range q.Snap.States {
		s := &q.Snap.States[i]
		s.Streaming = rapid.Int32Range(0, 100).Draw(t, "streams")
		s.Pending = rapid.Int32Range(0, 20).Draw(t, "pending")
		s.Requests = s.Streaming + s.Pending
		s.Uncached = rapid.Int64Range(0, 1_000_000).Draw(t, "uncached")
		q.Hits[i] = int32(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 100)).Draw(t, "hits"))
		q.Keep[i] = rapid.IntRange(0, 3).Draw(t, "keep") > 0
		f := &fore[i]
		f.Price.First, f.Price.Decode = ms.Draw(t, "first")/1e3, ms.Draw(t, "decode")/1e3
		f.Price.Gap = f.Price.Decode / 100
		f.Price.Prefill, f.Price.KVWait = ms.Draw(t, "prefill")/1e5, ms.Draw(t, "kv wait")/1e5
		f.Price.Sigma = rapid.Float32Range(0, .5).Draw(t, "sigma")
		for _, p := range []*features.Prediction{&f.TTFT, &f.ITL} {
			p.P50 = ms.Draw(t, "p50") / 1e3
			p.P90 = p.P50 * rapid.Float32Range(1, 3).Draw(t, "p90")
		}
	}
	q.Keep[rapid.IntRange(0, n-1).Draw(t, "kept")] = true
	return q, fore
}

// anySLO draws what a request may carry.
func anySLO(t *rapid.T) request.SLO {
	level := func(what string) time.Duration {
		return rapid.OneOf(rapid.Just[time.Duration](0), rapid.SampledFrom([]time.Duration{time.Millisecond, time.Hour}),
			rapid.Map(rapid.Int64Range(1, 10_000), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond })).Draw(t, what)
	}
	return request.SLO{TTFT: level("ttft slo"), ITL: level("itl slo")}
}

type failer interface{ Fatal(...any) }

// made returns the policy of that name, which may set knobs.
func made(t failer, name string) router.Policy {
	p, err := Recipes().New(name, router.Params{Fallbacks: 2})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// route asks the policy once and checks what every decision must keep.
func route(t failer, p router.Policy, q *router.Query) *router.Decision {
	d := &router.Decision{}
	d.Reset()
	if err := p.Route(q, d); err != nil {
		t.Fatal(err)
	}
	if !q.Keep[d.Index] {
		t.Fatal("picked", d.Index, "of candidates", q.Keep)
	}
	if d.Propensity != 1 {
		t.Fatal("a rule without draws reports propensity", d.Propensity)
	}
	return d
}

// TestKnobs: bounds hold the defaults and both make a policy; beyond them none is made.
func TestKnobs(t *testing.T) {
	r := Recipes()
	if len(r["predictive"].Knobs) != 7 {
		t.Errorf("knobs %v", r["predictive"].Knobs)
	}
	for _, k := range r["predictive"].Knobs {
		for _, v := range []float64{k.Low, k.Default, k.High} {
			p := made(t, fmt.Sprintf("predictive:%s=%g", k.Name, v))
			q, _ := newQuery(3)
			route(t, p, q)
		}
		for _, v := range []string{"-0.001", fmt.Sprint(k.High + 1), "NaN", "Inf", "-Inf", "1e999", "x", ""} {
			if _, err := r.New("predictive:"+k.Name+"="+v, router.Params{}); err == nil {
				t.Errorf("knob %s=%s is taken", k.Name, v)
			}
		}
	}
}
