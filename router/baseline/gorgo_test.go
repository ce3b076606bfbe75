package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// finished is the record of a request with those tokens and that TTFT.
func finished(endpoint int, own, queued int, ttft time.Duration) *features.Observation {
	name := fmt.Sprint("e", endpoint)
	return &features.Observation{
		Endpoint: name, Picked: name, PromptTokens: own + 100, HitTokens: 100, State: fleet.Inflight{Uncached: int64(queued)}, TTFT: ttft,
	}
}

// TestGorgo2DCost: own tokens plus queued ones, at the slopes, the lowest wins.
func TestGorgo2DCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		p := made(t, "gorgo-2d", router.Params{Knobs: map[string]float64{"queued": 0.5}}).(*Gorgo2D)
		p.own, p.queued = 0.08, 0.05
		d := route(t, p, q)
		cost := func(i int) float64 {
			return 0.08*float64(q.UncachedTokens(i)) + 0.5*0.05*float64(q.Snap.States[i].Uncached)
		}
		least := cost(argmin(q, cost)[0])
		if got := cost(d.Index); got > least+1e-9 {
			t.Fatalf("picked %d at %v ms, the lowest is %v", d.Index, got, least)
		}
	})
}

// TestGorgo2DRegresses recovers the slopes of a world that is as the rule supposes, whatever the
// endpoints' own constants, and no earlier than the window is full.
func TestGorgo2DRegresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.Float64Range(0.001, 4).Draw(t, "ms per own token")
		queued := rapid.Float64Range(0.001, 4).Draw(t, "ms per queued token")
		p := NewGorgo2D(router.Params{})
		r := rand.New(rand.NewPCG(1, 2))
		for n := range gorgoWindow {
			if p.own != gorgoPrice || p.queued != gorgoPrice {
				t.Fatalf("slopes %v and %v after %d records", p.own, p.queued, n)
			}
			e, u, k := n%4, r.IntN(8000), r.IntN(50_000)
			ms := float64(1000*e) + own*float64(u) + queued*float64(k)
			p.Observe(finished(e, u, k, time.Duration(ms*1e6)))
		}
		if math.Abs(p.own/own-1) > 1e-2 || math.Abs(p.queued/queued-1) > 1e-2 {
			t.Fatalf("slopes %v and %v, want %v and %v", p.own, p.queued, own, queued)
		}
	})
}

// TestGorgo2DKeepsWhatItCannotTell: windows without queues, of one length, of failures, of absurd times.
func TestGorgo2DKeepsWhatItCannotTell(t *testing.T) {
	for _, c := range []struct {
		name        string
		record      func(n int) *features.Observation
		own, queued float64
	}{
		{"nothing queues", func(n int) *features.Observation { return finished(n%3, n, 0, time.Duration(n)*time.Millisecond/4) }, .25, 1},
		{"all prompts equal", func(n int) *features.Observation { return finished(n%3, 500, n, time.Duration(n)*time.Millisecond/2) }, 1, .5},
		{"nothing varies", func(n int) *features.Observation { return finished(n%3, 500, 500, time.Second) }, 1, 1},
		{"one moves with the other", func(n int) *features.Observation { return finished(0, n, 2*n, time.Duration(n)*time.Millisecond) }, 1, 1},
		{"no first tokens", func(n int) *features.Observation { return finished(0, n, n*n, 0) }, 1, 1},
		{"served elsewhere", func(n int) *features.Observation { o := finished(0, n, n*n, time.Second); o.Endpoint = "e9"; return o }, 1, 1},
		{"longer is faster", func(n int) *features.Observation { return finished(0, n, 0, time.Duration(1000-n)*time.Millisecond) }, gorgoLeast, 1},
		{"beyond reason", func(n int) *features.Observation { return finished(0, n, 0, time.Duration(n)*time.Hour) }, gorgoMost, 1},
	} {
		p := NewGorgo2D(router.Params{})
		for n := range 3 * gorgoWindow {
			p.Observe(c.record(n))
		}
		if math.Abs(p.own-c.own) > 1e-6*c.own || math.Abs(p.queued-c.queued) > 1e-6 {
			t.Errorf("%s: slopes %v and %v, want %v and %v", c.name, p.own, p.queued, c.own, c.queued)
		}
	}
}

// TestGorgo2DLearnsWhileServing: records come from other goroutines than decisions.
func TestGorgo2DLearnsWhileServing(t *testing.T) {
	p := NewGorgo2D(router.Params{})
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for n := range 200 {
				p.Observe(finished(g, n*(g+1), n*n, time.Duration(1+n+n*n)*time.Millisecond/10))
			}
		})
	}
	q := newQuery(&request.Request{Model: "demo", PromptTokens: 640, Choices: 1}, 3)
	for range 200 {
		route(t, p, q)
	}
	wg.Wait()
	if p.seen != 600 || p.own == gorgoPrice && p.queued == gorgoPrice {
		t.Errorf("%d records, slopes %v and %v", p.seen, p.own, p.queued)
	}
}
