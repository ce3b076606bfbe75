package baseline

import (
	"fmt"
	"math"
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

// anyQuery draws a query: some endpoints with some work, some of the prompt cached, some no candidates.
func anyQuery(t *rapid.T) *router.Query {
	n := rapid.IntRange(1, 7).Draw(t, "endpoints")
	blocks := rapid.IntRange(0, 20).Draw(t, "blocks")
	req := &request.Request{Model: "demo", PromptTokens: 64*blocks + rapid.IntRange(1, 63).Draw(t, "rest"), ExactTokens: true, Choices: 1,
		BlockSize: 256, Blocks: make([]uint64, blocks), MediaUnits: rapid.IntRange(0, 1).Draw(t, "media")}
	req.PromptBytes = 4 * req.PromptTokens
	q := newQuery(req, n)
	for i := range q.Snap.States {
		s := &q.Snap.States[i]
		s.Requests = rapid.OneOf(rapid.Int32Range(0, 3), rapid.Int32Range(0, 200)).Draw(t, "requests")
		s.Uncached = rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, 1_000_000)).Draw(t, "uncached")
		s.PendingTokens = s.Uncached + rapid.Int64Range(0, 1000).Draw(t, "cached in flight")
		s.Context = rapid.Int64Range(0, 100_000).Draw(t, "context")
		s.Begun = rapid.Uint64Range(0, 5).Draw(t, "begun")
		s.KVUsage = rapid.Float32Range(0, 1).Draw(t, "kv")
		if rapid.Bool().Draw(t, "dark") {
			s.Load = &fleet.Load{}
		}
		q.Hits[i] = int32(rapid.OneOf(rapid.Just(0), rapid.IntRange(0, blocks)).Draw(t, "hits"))
		q.Keep[i] = rapid.IntRange(0, 3).Draw(t, "keep") > 0
	}
	q.Keep[rapid.IntRange(0, n-1).Draw(t, "kept")] = true
	if rapid.Bool().Draw(t, "foretold") {
		q.Suppose(anyForecasts(t, n))
		req.SLO = request.SLO{
			TTFT: time.Duration(rapid.IntRange(0, 2000).Draw(t, "ttft slo")) * time.Millisecond,
			ITL:  time.Duration(rapid.IntRange(0, 80).Draw(t, "itl slo")) * time.Millisecond,
		}
	}
	return q
}

// anyForecasts draws forecasts, of which some are none.
func anyForecasts(t *rapid.T, n int) []features.Forecast {
	fore := make([]features.Forecast, n)
	for i := range fore {
		seconds := func(what string, most int) features.Prediction {
			s := float32(rapid.IntRange(1, most).Draw(t, what)) / 1000
			return features.Prediction{Mean: s, P50: s, P90: 1.5 * s, P99: 2 * s}
		}
		fore[i] = features.Forecast{TTFT: seconds("ttft", 4000), ITL: seconds("itl", 100)}
		if bad := rapid.SampledFrom([]float32{1, 1, 1, 0, float32(math.NaN()), float32(math.Inf(1)), -1}).Draw(t, "bad"); bad != 1 {
			fore[i].TTFT.P90 *= bad
		}
	}
	return fore
}

// newQuery makes a query over n idle endpoints, all of them candidates.
func newQuery(req *request.Request, n int) *router.Query {
	q := &router.Query{
		Now: t0, Req: req, Snap: &fleet.Snapshot{At: t0, Slots: n}, Hits: make([]int32, n),
		Keep: make([]bool, n), Out: make([]string, n), Rand: rand.New(rand.NewPCG(7, 7)),
	}
	for i := range n {
		q.Keep[i] = true
		q.Snap.States = append(q.Snap.States, fleet.State{
			Endpoint: &fleet.Endpoint{Name: fmt.Sprintf("e%d", i), Model: "demo"}, Slot: i, Instance: uint64(i + 1), Since: t0.Add(-time.Hour),
			Load: &fleet.Load{At: t0, Known: fleet.KnowKV | fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowTokens},
		})
	}
	return q
}

// made returns the policy of that name.
func made(t interface{ Fatal(...any) }, name string, p router.Params) router.Policy {
	policy, err := Policies().New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// route asks the policy once.
func route(t interface{ Fatal(...any) }, p router.Policy, q *router.Query) *router.Decision {
	d := &router.Decision{}
	d.Reset()
	if err := p.Route(q, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// lowest are the candidates of the lowest cost, +Inf being no candidate.
func argmin(q *router.Query, cost func(i int) float64) (best []int) {
	for i, k := range q.Keep {
		switch {
		case !k:
		case len(best) == 0 || cost(i) < cost(best[0]):
			best = []int{i}
		case cost(i) == cost(best[0]):
			best = append(best, i)
		}
	}
	return best
}

// TestEveryPolicy checks what every one promises: a candidate, a propensity that is its long-run
// frequency, additive terms, distinct fallbacks, no allocation, and the name it is known by.
func TestEveryPolicy(t *testing.T) {
	for name, recipe := range Policies() {
		t.Run(name, func(t *testing.T) {
			if recipe.About == "" {
				t.Error("nothing said about it")
			}
			if got := made(t, name, router.Params{}).Name(); got != name {
				t.Errorf("is called %s", got)
			}
			rapid.Check(t, func(t *rapid.T) {
				q := anyQuery(t)
				n := rapid.IntRange(0, 8).Draw(t, "fallbacks")
				p := made(t, name, router.Params{Seed: 3, Fallbacks: n})
				d := route(t, p, q)
				check(t, q, d, n)
			})
		})
	}
}

func check(t *rapid.T, q *router.Query, d *router.Decision, fallbacks int) {
	if !q.Keep[d.Index] || !(d.Propensity > 0 && d.Propensity <= 1) {
		t.Fatalf("picked %d with propensity %v", d.Index, d.Propensity)
	}
	if want := min(fallbacks, q.Candidates()-1); len(d.Fallback) != want {
		t.Fatalf("%d fallbacks, want %d", len(d.Fallback), want)
	}
	seen := map[int]bool{d.Index: true}
	for _, i := range d.Fallback {
		if !q.Keep[i] || seen[i] {
			t.Fatalf("picked %d, then %v", d.Index, d.Fallback)
		}
		seen[i] = true
	}
	if d.Why.Reason == router.NoReason && q.Candidates() == 1 {
		t.Fatalf("no reason given")
	}
	for i, total := range d.Why.Totals {
		sum, size := 0.0, 1.0
		for _, v := range d.Why.Row(i) {
			sum += float64(v)
			size = max(size, float64(v), float64(-v))
		}
		if diff := sum - float64(total); diff > 1e-5*size || diff < -1e-5*size {
			t.Fatalf("endpoint %d: terms add up to %v, total %v", i, sum, total)
		}
	}
	if q.Candidates() == 1 && (d.Why.Reason != router.OnlyOne || d.Propensity != 1) {
		t.Fatalf("the only candidate: reason %s, propensity %v", d.Why.Reason, d.Propensity)
	}
}

// TestPropensityIsTheFrequency draws many times from one state with every policy.
func TestPropensityIsTheFrequency(t *testing.T) {
	const draws = 20_000
	for name := range Policies() {
		if name == "round-robin" {
			continue // its state moves with every decision
		}
		t.Run(name, func(t *testing.T) {
			q := newQuery(&request.Request{Model: "demo", PromptTokens: 640, PromptBytes: 2560, BlockSize: 256, Choices: 1}, 5)
			for i, n := range []int32{2, 1, 1, 4, 1} {
				q.Snap.States[i].Requests = n
			}
			q.Keep[4] = false
			q.Hits[0], q.Hits[3] = 9, 9
			p := made(t, name, router.Params{})
			var count, propensity [5]float64
			for range draws {
				d := route(t, p, q)
				if propensity[d.Index] != 0 && propensity[d.Index] != d.Propensity {
					t.Fatalf("endpoint %d has propensities %v and %v", d.Index, propensity[d.Index], d.Propensity)
				}
				propensity[d.Index] = d.Propensity
				count[d.Index] += 1. / draws
			}
			sum := 0.0
			for i := range count {
				if diff := count[i] - propensity[i]; diff > 0.02 || diff < -0.02 {
					t.Errorf("endpoint %d: frequency %.3f, propensity %.3f", i, count[i], propensity[i])
				}
				sum += propensity[i]
			}
			if sum < 0.999 || sum > 1.001 {
				t.Errorf("propensities sum to %v", sum)
			}
		})
	}
}

func TestNoPolicyAllocates(t *testing.T) {
	for name := range Policies() {
		q := newQuery(&request.Request{Model: "demo", PromptTokens: 640, PromptBytes: 2560, BlockSize: 256, Choices: 1}, 100)
		for i := range q.Snap.States {
			q.Snap.States[i].Requests = int32(i % 9)
			q.Hits[i] = int32(i % 10)
		}
		p := made(t, name, router.Params{Fallbacks: 2})
		d := &router.Decision{}
		run := func() {
			d.Reset()
			if err := p.Route(q, d); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations per decision", name, n)
		}
	}
}
