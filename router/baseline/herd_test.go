package baseline

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// herd sends simultaneous requests at a fleet whose pages are frozen, and returns the uncached
// tokens each endpoint was given.
func herd(t *testing.T, p router.Policy, endpoints, requests int) []float64 {
	t.Helper()
	var f fleet.Fleet
	var list []*fleet.Endpoint
	for i := range endpoints {
		list = append(list, &fleet.Endpoint{Name: fmt.Sprintf("e%d", i), Model: "demo",
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000)})
	}
	ch, err := f.Sync(t0, list)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range ch.Added {
		f.SetLoad(ref, &fleet.Load{At: t0, Known: fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV})
	}
	r := router.New(router.Options{Fleet: &f, Policy: p})
	var wg sync.WaitGroup
	start := make(chan struct{})
	for n := range requests {
		wg.Go(func() {
			<-start
			req := &request.Request{Model: "demo", PromptTokens: 8000, ExactTokens: true, PromptBytes: 32_000, BlockSize: 256, Choices: 1}
			for b := range 125 {
				req.Blocks = append(req.Blocks, uint64(n)<<32|uint64(b))
			}
			if err := r.Route(&router.Ask{Now: t0, Req: req}, &router.Flight{}); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	var snap fleet.Snapshot
	f.Snapshot(t0, &snap)
	work := make([]float64, endpoints)
	for i := range snap.States {
		work[i] = float64(snap.States[i].BegunUncached)
	}
	return work
}

// imbalance is the largest over the mean.
func imbalance(work []float64) float64 {
	most, sum := 0.0, 0.0
	for _, w := range work {
		most, sum = max(most, w), sum+w
	}
	return most / (sum / float64(len(work)))
}

// TestHerdSpreads: 200 equal cold requests at once on 8 idle equal endpoints with frozen gauges. Each
// decision sees what the one before reserved, so no endpoint gets more than 1.25 times its share.
func TestHerdSpreads(t *testing.T) {
	tokens, err := router.NewProfile("tokens", router.ProfileSpec{Scorers: map[string]*float64{"prefix": nil, "tokens": nil}})
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]router.Policy{"profile of prefix and tokens": tokens}
	for _, name := range []string{"round-robin", "least-request", "llmd-sticky-token", "llmd-active", "dynamo-linear", "lmetric", "smg-cache-aware", "smg-least-load", "aibrix-prefix", "gorgo-2d"} {
		policies[name] = made(t, name, router.Params{})
	}
	for name, p := range policies {
		work := herd(t, p, 8, 200)
		if r := imbalance(work); r > 1.25 {
			t.Errorf("%s: largest over mean %.2f: %v", name, r, work)
		}
	}
	if r := imbalance(herd(t, made(t, "always-busiest", router.Params{}), 8, 200)); r < 7 {
		t.Errorf("the negative control spreads: largest over mean %.2f", r)
	}
}

// TestB46NoOvershootBetweenScrapes: 100 requests on 4 equal endpoints while no scrape arrives.
func TestB46NoOvershootBetweenScrapes(t *testing.T) {
	for _, name := range []string{"least-request", "round-robin", "llmd-active", "lmetric", "dynamo-linear"} {
		for i, w := range herd(t, made(t, name, router.Params{}), 4, 100) {
			if n := w / 8000; n < 15 || n > 35 {
				t.Errorf("%s: endpoint %d got %v of 100", name, i, n)
			}
		}
	}
}
