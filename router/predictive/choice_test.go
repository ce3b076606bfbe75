package predictive

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// band is the width of near ties as the rule states it.
func band(q *router.Query, fore []features.Forecast) float64 {
	var sigma float64
	for i, k := range q.Keep {
		if k {
			sigma = max(sigma, float64(fore[i].Price.Sigma))
		}
	}
	return math.Exp(min(max(knobMargin.Default*sigma, 0.02), 0.30))
}

// TestNearTiesGoToTheCache compares with the rule as it is stated: of those within the band, the most
// cached; of those, the cheapest.
func TestNearTiesGoToTheCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, fore := anyQuery(t, rapid.IntRange(1, 9).Draw(t, "endpoints"))
		if rapid.Bool().Draw(t, "close") { // costs of nearly the same size
			for i := range fore {
				fore[i].Price = features.Price{First: 1 + float32(rapid.IntRange(0, 40).Draw(t, "cost"))/100, Sigma: .1}
			}
		}
		d := route(t, made(t, "predictive"), q)
		least := math.Inf(1)
		for i, k := range q.Keep {
			if k {
				least = min(least, float64(d.Why.Totals[i]))
			}
		}
		limit := least * band(q, fore)
		mine := float64(d.Why.Totals[d.Index])
		if mine > limit*(1+1e-5) {
			t.Fatalf("picked %d at %v ms, the limit is %v", d.Index, mine, limit)
		}
		for i, k := range q.Keep {
			cost := float64(d.Why.Totals[i])
			switch {
			case !k || cost > limit*(1-1e-5):
			case q.Hits[i] > q.Hits[d.Index]:
				t.Fatalf("picked %d with %d blocks, %d at %v of %v ms has %d", d.Index, q.Hits[d.Index], i, cost, limit, q.Hits[i])
			case q.Hits[i] == q.Hits[d.Index] && cost < mine*(1-1e-5):
				t.Fatalf("picked %d at %v ms, %d holds as much at %v", d.Index, mine, i, cost)
			}
		}
		cheaper := false
		for i, k := range q.Keep {
			cheaper = cheaper || k && float64(d.Why.Totals[i]) < mine*(1-1e-5) && q.Hits[i] < q.Hits[d.Index]
		}
		if cheaper && d.Why.Reason != router.ByCache {
			t.Fatalf("a cheaper one was passed over by %s", d.Why.Reason)
		}
	})
}

// TestMarginFollowsSigma: 10 % dearer and warm is taken at a deviation of 8 %, not where endpoints are
// told apart to 1 %, nor with no margin; 35 % dearer never.
func TestMarginFollowsSigma(t *testing.T) {
	for _, c := range []struct {
		name        string
		sigma, more float32
		want        int
	}{
		{"predictive", .08, 1.10, 1},
		{"predictive", .01, 1.10, 0},
		{"predictive", .01, 1.015, 1},
		{"predictive", .01, 1.025, 0},
		{"predictive", .9, 1.34, 1},
		{"predictive", .9, 1.36, 0},
		{"predictive:margin=0", .9, 1.01, 0},
		{"predictive:margin=4", .05, 1.2, 1},
	} {
		q, fore := newQuery(2)
		fore[0].Price = features.Price{First: 1, Sigma: c.sigma}
		fore[1].Price = features.Price{First: c.more, Sigma: c.sigma}
		q.Hits[1] = 50
		if d := route(t, made(t, c.name), q); d.Index != c.want {
			t.Errorf("%s: sigma %v, %v times as dear: picked %d", c.name, c.sigma, c.more, d.Index)
		}
	}
}

// TestColdTiesByHash: equal requests go to one endpoint, and different ones everywhere alike: each of
// 8 equals gets its eighth of 4,000, within five standard deviations.
func TestColdTiesByHash(t *testing.T) {
	const n, requests = 8, 4000
	q, _ := newQuery(n)
	p := made(t, "predictive")
	for _, stride := range []uint64{1, 1 << 32, 0x9e3779b97f4a7c15} {
		var count [n]float64
		for r := range uint64(requests) {
			q.Tie = r * stride
			d := route(t, p, q)
			if again := route(t, p, q); again.Index != d.Index {
				t.Fatalf("hash %d goes to %d, then to %d", q.Tie, d.Index, again.Index)
			}
			count[d.Index]++
		}
		mean := float64(requests) / n
		for i, c := range count {
			if sd := math.Sqrt(mean * (1 - 1./n)); math.Abs(c-mean) > 5*sd {
				t.Errorf("stride %d: endpoint %d got %v of %v", stride, i, c, mean)
			}
		}
	}
}

// TestMoreWorkIsNeverPreferred: what is added to an endpoint that is not picked does not make it so,
// with the law of the generic prior.
func TestMoreWorkIsNeverPreferred(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "endpoints")
		q, _ := anyQuery(t, n)
		q.Req.Choices = 1
		for i := range q.Snap.States {
			s := &q.Snap.States[i]
			s.Inflight = fleet.Inflight{Streaming: s.Streaming, Context: int64(s.Streaming) * rapid.Int64Range(100, 8000).Draw(t, "context")}
			for range rapid.IntRange(0, 4).Draw(t, "pending") {
				add(s, rapid.Int64Range(1, 30_000).Draw(t, "prompt"), 0)
			}
			if rapid.Bool().Draw(t, "scraped") {
				s.Load = &fleet.Load{At: t0, Known: fleet.KnowKV, KVUsage: rapid.Float32Range(0, 1).Draw(t, "kv")}
			}
		}
		p := made(t, "predictive")
		foresee(q)
		picked := route(t, p, q).Index
		loser := rapid.IntRange(0, n-1).Draw(t, "loser")
		if loser == picked {
			return
		}
		s := &q.Snap.States[loser]
		if rapid.Bool().Draw(t, "stream") {
			s.Streaming++
			s.Requests++
			s.Context += rapid.Int64Range(1, 30_000).Draw(t, "more context")
		} else {
			add(s, rapid.Int64Range(1, 30_000).Draw(t, "more"), rapid.Int64Range(0, 5000).Draw(t, "cached"))
		}
		foresee(q)
		if route(t, p, q).Index == loser {
			t.Fatalf("%d is picked once it has more work, %d was before", loser, picked)
		}
	})
}

// add puts one more pending request into the ledger.
func add(s *fleet.State, uncached, cached int64) {
	if s.Pending == 0 {
		s.OldestPending, s.HeadUncached = t0, uncached
	}
	s.Pending++
	s.PendingTokens += uncached + cached
	s.Uncached += uncached
	s.Attention += uncached * (2*cached + uncached)
	s.Requests = s.Pending + s.Streaming
}

// foresee makes the forecasts of a predictor that has learned nothing.
func foresee(q *router.Query) {
	var b predictor.Batch
	b.Size(len(q.Snap.States))
	features.Extract(b.X, b.At, q.Req, q.Snap, q.Hits)
	new(predictor.Frozen).Predict(&b)
	q.Suppose(b.Fore)
}
