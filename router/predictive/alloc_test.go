package predictive

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// repeat routes the same query many times, under the decision lock.
type repeat struct {
	router.Policy
	allocs float64
}

func (r *repeat) Route(q *router.Query, d *router.Decision) error {
	err := r.Policy.Route(q, d)
	r.allocs = testing.AllocsPerRun(100, func() {
		d.Reset()
		err = r.Policy.Route(q, d)
	})
	return err
}

// TestRouteDoesNotAllocate, with forecasts and without.
func TestRouteDoesNotAllocate(t *testing.T) {
	now := time.Unix(1e9, 0)
	f := new(fleet.Fleet)
	var list []*fleet.Endpoint
	for i := range 100 {
		list = append(list, &fleet.Endpoint{Name: fmt.Sprint("e", i), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 8000), Model: "m", TP: 1})
	}
	if _, err := f.Sync(now, list); err != nil {
		t.Fatal(err)
	}
	for name, forecast := range map[string]*predictor.Handle{"forecasts": new(predictor.Handle), "no forecasts": nil} {
		for _, policy := range Recipes().Names() {
			p, err := Recipes().New(policy, router.Params{Fallbacks: 3})
			if err != nil {
				t.Fatal(err)
			}
			r := &repeat{Policy: p}
			req := &request.Request{API: request.Chat, Model: "m", Stream: true, PromptTokens: 2000, ExactTokens: true, Choices: 1, SLO: request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}}
			ask := router.Ask{Now: now, Req: req}
			if err := router.New(router.Options{Fleet: f, Policy: r, Forecast: forecast}).Route(&ask, new(router.Flight)); err != nil {
				t.Fatal(err)
			}
			if r.allocs != 0 {
				t.Errorf("%s with %s: %v allocations per decision", policy, name, r.allocs)
			}
		}
	}
}
