package predictive

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// newRouter makes a router with the predictive policy over n idle equal endpoints whose pages are
// that old, foretelling by the generic prior.
func newRouter(t failer, n int, age time.Duration) (*router.Router, []netip.AddrPort) {
	var f fleet.Fleet
	var list []*fleet.Endpoint
	var addrs []netip.AddrPort
	for i := range n {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000)
		addrs = append(addrs, addr)
		list = append(list, &fleet.Endpoint{Name: fmt.Sprintf("e%d", i), Model: "demo", Addr: addr})
	}
	ch, err := f.Sync(t0, list)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range ch.Added {
		f.SetLoad(ref, &fleet.Load{At: t0.Add(-age), Known: fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV, KVUsage: .1})
	}
	return router.New(router.Options{Fleet: &f, Policy: made(t, "predictive"), Forecast: new(predictor.Handle)}), addrs
}

// cold is a request of which nobody holds anything.
func cold(id uint64, tokens int) *request.Request {
	req := &request.Request{Model: "demo", PromptTokens: tokens, ExactTokens: true, PromptBytes: 4 * tokens, BlockSize: 256, Choices: 1, Stream: true}
	for b := range tokens / 64 {
		req.Blocks = append(req.Blocks, id<<32|uint64(b))
	}
	return req
}

// TestHerdSpreads: 200 equal cold requests at once on 8 idle equal endpoints whose pages do not change:
// each decision sees what the one before reserved, so none gets over 1.25 times its share, however old
// the pages, and with nothing foretold at all.
func TestHerdSpreads(t *testing.T) {
	const endpoints, requests, tokens = 8, 200, 8000
	for _, age := range []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		r, _ := newRouter(t, endpoints, age)
		most, by := send(t, r, requests, tokens)
		if limit := 1.25 * requests * tokens / endpoints; most > limit {
			t.Errorf("pages %v old: an endpoint got %v of %v uncached tokens: %v", age, most, requests*tokens, by)
		}
	}
	plain, _ := newRouter(t, endpoints, 0)
	blind := router.New(router.Options{Fleet: plain.Fleet(), Policy: made(t, "predictive")})
	if most, by := send(t, blind, requests, tokens); most > 1.25*requests*tokens/endpoints {
		t.Errorf("nothing foretold: an endpoint got %v: %v", most, by)
	}
}

// send routes that many requests at once and returns what the fullest endpoint was given.
func send(t *testing.T, r *router.Router, requests, tokens int) (most float64, by []uint64) {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for n := range requests {
		wg.Go(func() {
			<-start
			if err := r.Route(&router.Ask{Now: t0, Req: cold(uint64(n), tokens)}, &router.Flight{}); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	var snap fleet.Snapshot
	r.Fleet().Snapshot(t0, &snap)
	for i := range snap.States {
		by = append(by, snap.States[i].BegunUncached)
		most = max(most, float64(snap.States[i].BegunUncached))
	}
	return most, by
}
