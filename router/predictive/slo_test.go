package predictive

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// TestSLOPriceIsBounded: whatever SLO is carried, its price is finite, not negative, at most 10 % of
// the cheapest cost and at most what the weight makes of the seconds at stake; without one there is none.
func TestSLOPriceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, _ := anyQuery(t, rapid.IntRange(1, 9).Draw(t, "endpoints"))
		q.Req.SLO = anySLO(t)
		name := rapid.SampledFrom([]string{"predictive", "predictive:slo=10", "predictive:slo=0"}).Draw(t, "policy")
		d := route(t, made(t, name), q)
		least := math.Inf(1)
		for i, k := range q.Keep {
			if k {
				least = min(least, float64(d.Why.Totals[i]-d.Why.Row(i)[termSLO]))
			}
		}
		for i, k := range q.Keep {
			if !k {
				continue
			}
			price := float64(d.Why.Row(i)[termSLO])
			atStake := 1e3 * (min(q.Req.SLO.TTFT.Seconds(), mostAtStake) + mostAtStake)
			if !(price >= 0 && price <= sloShare*least*(1+1e-4)+0.02) || name == "predictive" && price > atStake {
				t.Fatalf("endpoint %d: price %v ms of SLO %v where the cheapest costs %v", i, price, q.Req.SLO, least)
			}
			if (name == "predictive:slo=0" || q.Req.SLO == request.SLO{}) && price != 0 {
				t.Fatalf("endpoint %d: price %v ms for nothing", i, price)
			}
		}
	})
}

// TestSLOPriceIsWhatIsAtStake: surely missing an SLO costs its length, and 2 s at most; an ITL SLO is as long as the answer foretold.
func TestSLOPriceIsWhatIsAtStake(t *testing.T) {
	for _, c := range []struct {
		slo  request.SLO
		want float64 // ms
	}{
		{request.SLO{TTFT: time.Second}, 1000},
		{request.SLO{TTFT: 10 * time.Second}, 2000},
		{request.SLO{ITL: 10 * time.Millisecond}, 1000}, // 100 tokens
		{request.SLO{ITL: time.Second}, 2000},
		{request.SLO{TTFT: time.Second, ITL: time.Second}, 3000},
	} {
		q, fore := newQuery(1)
		fore[0].TTFT.P50, fore[0].TTFT.P90 = 1000, 1000
		fore[0].ITL.P50, fore[0].ITL.P90 = 100, 100
		fore[0].Price.First, fore[0].Price.Gap, fore[0].Price.Decode = 1000, 100, 100*100
		q.Req.SLO = c.slo
		if got := float64(route(t, made(t, "predictive"), q).Why.Row(0)[termSLO]); math.Abs(got-c.want) > 1 {
			t.Errorf("%v: price %v ms, want %v", c.slo, got, c.want)
		}
	}
}

// TestSLOPrefersTheSafe: of two that cost the same, the one that keeps the SLO; the sum without SLOs
// decides nothing between them.
func TestSLOPrefersTheSafe(t *testing.T) {
	for name, slo := range map[string]request.SLO{"ttft": {TTFT: time.Second}, "itl": {ITL: 60 * time.Millisecond}} {
		for safe := range 2 {
			q, fore := newQuery(2)
			q.Req.SLO = slo
			for i := range fore { // as cheap as each other: waiting for KV blocks counts twice
				f := &fore[i]
				f.TTFT.P50, f.TTFT.P90, f.ITL.P50, f.ITL.P90 = .6, .8, .04, .05
				f.Price.First, f.Price.KVWait, f.Price.Gap, f.Price.Decode = 0, .6, .04, 4
			}
			risky := &fore[1-safe]
			risky.TTFT.P50, risky.TTFT.P90, risky.ITL.P50, risky.ITL.P90 = 1.2, 1.6, .07, .09
			risky.Price.First, risky.Price.KVWait, risky.Price.Gap = 1.2, 0, .07
			d := route(t, made(t, "predictive"), q)
			if d.Index != safe {
				t.Errorf("%s: picked %d by %s, %d is safe", name, d.Index, d.Why.Reason, safe)
			}
			if p := d.Why.Row(1 - safe)[termSLO]; p < 100 {
				t.Errorf("%s: missing it costs %v ms", name, p)
			}
		}
	}
}

// TestSLOIsTheRequestsOwn: how B is ranked does not depend on the SLO that A carried, when A went to
// the same endpoint and fared the same.
func TestSLOIsTheRequestsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to := rapid.IntRange(0, 2).Draw(t, "A goes to")
		first, ended := rapid.Bool().Draw(t, "first token"), rapid.Bool().Draw(t, "ended")
		mine := anySLO(t)
		after := func(slo request.SLO) router.Explanation {
			r, addrs := newRouter(t, 3, 0)
			var a, b router.Flight
			ask := router.Ask{Now: t0, Req: cold(1, 4000), Subset: addrs[to : to+1], Narrow: true}
			ask.Req.SLO = slo
			if err := r.Route(&ask, &a); err != nil {
				t.Fatal(err)
			}
			if first || ended {
				a.Tokens(t0.Add(300*time.Millisecond), 1)
			}
			if ended {
				a.Tokens(t0.Add(2*time.Second), 100)
				a.Finish(t0.Add(2*time.Second), &router.Outcome{Usage: router.Usage{Prompt: 4000, Cached: 0, Output: 101}})
			}
			req := cold(2, 3000)
			req.SLO = mine
			if err := r.Route(&router.Ask{Now: t0.Add(3 * time.Second), Req: req}, &b); err != nil {
				t.Fatal(err)
			}
			return b.Decision.Why
		}
		if diff := cmp.Diff(after(request.SLO{}), after(anySLO(t))); diff != "" {
			t.Fatalf("B is ranked by the SLO of A:\n%s", diff)
		}
	})
}
