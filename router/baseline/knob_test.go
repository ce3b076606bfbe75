package baseline

import (
	"fmt"
	"testing"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// TestKnobs: bounds hold the default, both bounds make a policy, beyond them none is made, and a name
// is given once.
func TestKnobs(t *testing.T) {
	r := Policies()
	for name, recipe := range r {
		seen := map[string]bool{}
		for _, k := range recipe.Knobs {
			if seen[k.Name] || k.About == "" || !(k.Low <= k.Default && k.Default <= k.High) {
				t.Errorf("%s: knob %+v", name, k)
			}
			seen[k.Name] = true
			for _, v := range []float64{k.Low, k.Default, k.High} {
				if _, err := r.New(fmt.Sprintf("%s:%s=%g", name, k.Name, v), router.Params{}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, v := range []string{fmt.Sprint(2*k.High + 1), "-1", "NaN", "Inf", "-Inf", "one", ""} {
				if _, err := r.New(fmt.Sprintf("%s:%s=%s", name, k.Name, v), router.Params{}); err == nil {
					t.Errorf("%s: knob %s=%s is taken", name, k.Name, v)
				}
			}
		}
	}
}

// TestKnobsAct: every knob changes a decision between a cache holder (0) and an idle endpoint (1), or
// its explanation.
func TestKnobsAct(t *testing.T) {
	for _, c := range []struct {
		name, with string
		hits       int32 // of 100 blocks, on endpoint 0
		state      func(q *router.Query)
		before     int // picked by default
		after      int
	}{
		{"llmd-sticky-token", "share=0.5", 60, func(q *router.Query) { q.Snap.States[0].Uncached = 100_000 }, 1, 0},
		{"llmd-active", "wait=1", 90, func(q *router.Query) { q.Snap.States[0].Uncached, q.Snap.States[0].Requests = 100_000, 3 }, 0, 1},
		{"llmd-active", "media=1", 90, func(q *router.Query) {
			q.Snap.States[0].Uncached, q.Snap.States[0].Requests, q.Req.MediaUnits = 100_000, 3, 1
		}, 0, 1},
		{"dynamo-linear", "credit=0", 100, func(q *router.Query) { q.Snap.States[0].Context = 1600 }, 0, 1},
		{"dynamo-linear", "prefill=0", 100, func(q *router.Query) { q.Snap.States[0].Context = 1600 }, 0, 1},
		{"dynamo-linear", "request=1000", 100, func(q *router.Query) { q.Snap.States[0].Requests = 1 }, 0, 1},
		{"smg-cache-aware", "match=0.9", 60, func(q *router.Query) { q.Snap.States[0].Requests = 3 }, 0, 1},
		{"smg-cache-aware", "absolute=2", 60, func(q *router.Query) { q.Snap.States[0].Requests = 3 }, 0, 1},
		{"smg-cache-aware", "relative=9", 60, func(q *router.Query) { q.Snap.States[0].Requests, q.Snap.States[1].Requests = 100, 20 }, 1, 0},
		{"smg-least-load", "lambda=0", 0, func(q *router.Query) { q.Snap.States[0].KVUsage, q.Snap.States[1].Uncached = .9, 100 }, 1, 0},
		{"aibrix-prefix", "imbalance=2", 60, func(q *router.Query) { q.Snap.States[0].Requests = 3 }, 0, 1},
		{"aibrix-prefix", "sigmas=0", 60, func(q *router.Query) { q.Snap.States[0].Requests = 3 }, 0, 1},
		{"gorgo-2d", "queued=0.01", 60, func(q *router.Query) { q.Snap.States[0].Uncached = 9000 }, 1, 0},
	} {
		q := newQuery(&request.Request{Model: "demo", PromptTokens: 6400, PromptBytes: 25_600, BlockSize: 256, Choices: 1}, 2)
		q.Hits[0] = c.hits
		c.state(q)
		for name, want := range map[string]int{c.name: c.before, c.name + ":" + c.with: c.after} {
			if d := route(t, made(t, name, router.Params{}), q); d.Index != want {
				t.Errorf("%s picks %d, want %d", name, d.Index, want)
			}
		}
	}
}
