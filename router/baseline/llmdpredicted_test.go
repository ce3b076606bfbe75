package baseline

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// foretold makes a query over busy endpoints with 90 % quantiles of TTFT and ITL in ms.
func foretold(slo request.SLO, times ...[2]float32) *router.Query {
	req := &request.Request{Model: "demo", PromptTokens: 6400, PromptBytes: 25_600, BlockSize: 256, Choices: 1, SLO: slo}
	q := newQuery(req, len(times))
	fore := make([]features.Forecast, len(times))
	for i, ms := range times {
		q.Snap.States[i].Requests = 1
		fore[i].TTFT = features.Prediction{P50: ms[0] / 2000, P90: ms[0] / 1000}
		fore[i].ITL = features.Prediction{P50: ms[1] / 2000, P90: ms[1] / 1000}
	}
	q.Suppose(fore)
	return q
}

// chances returns the probability of every endpoint, as the policy tells it.
func chances(t *testing.T, p router.Policy, q *router.Query) []float32 {
	t.Helper()
	d := route(t, p, q)
	if d.Propensity != float64(d.Why.Drawn[d.Index]) && math.Abs(d.Propensity-float64(d.Why.Drawn[d.Index])) > 1e-6 {
		t.Errorf("propensity %v, drawn with %v", d.Propensity, d.Why.Drawn[d.Index])
	}
	return append([]float32(nil), d.Why.Drawn...)
}

// TestLLMDPredictedChances writes the published formulas out for each case.
func TestLLMDPredictedChances(t *testing.T) {
	both := request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}
	cases := []struct {
		name string
		q    *router.Query
		set  func(q *router.Query)
		want []float64
	}{
		// Headroom .2 and .6 s, both .01: the ITL agrees, so the TTFT decides alone: 101 and 1 hundredths.
		{"least headroom weighs most", foretold(both, [2]float32{800, 40}, [2]float32{400, 40}), nil, []float64{101. / 102, 1. / 102}},
		// x = 0/1 and 1/0: c = .2 and .8.
		{"TTFT weighs four times the ITL", foretold(both, [2]float32{800, 20}, [2]float32{400, 40}), nil, []float64{81. / 102, 21. / 102}},
		{"all agree: all as likely", foretold(both, [2]float32{800, 20}, [2]float32{800, 20}), nil, []float64{.5, .5}},
		// The second has no headroom: 1 % of the draws.
		{"without headroom", foretold(both, [2]float32{800, 40}, [2]float32{1200, 40}), nil, []float64{.99, .01}},
		// Of those without headroom only the kind that misses the ITL alone, and of these the least late most.
		{"kinds of lateness", foretold(both, [2]float32{800, 60}, [2]float32{800, 70}, [2]float32{1200, 40}, [2]float32{1200, 60}), nil,
			[]float64{101. / 102, 1. / 102, 0, 0}},
		{"idle before all other late ones", foretold(both, [2]float32{800, 60}, [2]float32{9000, 90}), func(q *router.Query) { q.Snap.States[1].Requests = 0 }, []float64{0, 1}},
		// No SLO: minus what is foretold, so the fastest weighs most: x = 0, .5, 1.
		{"no SLO", foretold(request.SLO{}, [2]float32{100, 40}, [2]float32{200, 40}, [2]float32{300, 40}), nil, []float64{101. / 153, 51. / 153, 1. / 153}},
		{"only a TTFT SLO: all miss the ITL they do not have", foretold(request.SLO{TTFT: time.Second}, [2]float32{100, 40}, [2]float32{1200, 20}), nil, []float64{1, 0}},
		{"an exact holder takes all", foretold(both, [2]float32{800, 40}, [2]float32{4000, 40}), func(q *router.Query) { q.Hits[1] = 100 }, []float64{0, 1}},
		{"but not if 5 s slower", foretold(both, [2]float32{800, 40}, [2]float32{5801, 40}), func(q *router.Query) { q.Hits[1] = 100 }, []float64{.99, .01}},
		{"80 % holds within the tier alone", foretold(both, [2]float32{800, 40}, [2]float32{500, 40}, [2]float32{1200, 40}), func(q *router.Query) { q.Hits[1], q.Hits[2] = 80, 80 },
			[]float64{0, .99, .01}},
		{"one that is not foretold is left out", foretold(both, [2]float32{800, 40}, [2]float32{float32(math.NaN()), 40}), nil, []float64{1, 0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.set != nil {
				c.set(c.q)
			}
			got := chances(t, made(t, "llmd-predicted", router.Params{}), c.q)
			for i, want := range c.want {
				if math.Abs(float64(got[i])-want) > 1e-6 {
					t.Errorf("chances %v, want %v", got, c.want)
					break
				}
			}
		})
	}
}

// TestLLMDPredictedComposite: without forecasts, the mean of free KV, relative queue and match.
func TestLLMDPredictedComposite(t *testing.T) {
	q := foretold(request.SLO{TTFT: time.Second}, [2]float32{1, 1}, [2]float32{1, 1}, [2]float32{1, 1})
	q.Suppose(nil)
	for i, l := range []fleet.Load{{KVUsage: .25, Waiting: 2}, {KVUsage: .5, Waiting: 4}, {KVUsage: .5}} {
		l.At, l.Known = t0, fleet.KnowKV|fleet.KnowWaiting
		q.Snap.States[i].Load = &l
	}
	q.Hits[0] = 50
	q.Snap.States[2].At = t0.Add(-time.Minute) // says nothing
	got := chances(t, made(t, "llmd-predicted", router.Params{}), q)
	sum := .75 + .5 + .5 + .5 // .75 free, half the longest queue, half the prompt; .5 free, the longest queue
	for i, want := range []float64{1.75 / sum, .5 / sum, 0} {
		if math.Abs(float64(got[i])-want) > 1e-6 {
			t.Fatalf("chances %v: endpoint %d, want %v", got, i, want)
		}
	}
}

// TestLLMDPredictedSheds: only requests of negative priority with an SLO are ever refused.
func TestLLMDPredictedSheds(t *testing.T) {
	slo := request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}
	for _, c := range []struct {
		name    string
		set     func(q *router.Query)
		refused bool
	}{
		{"late and busy everywhere", func(*router.Query) {}, true},
		{"normal priority", func(q *router.Query) { q.Req.Priority = 0 }, false},
		{"no SLO to keep", func(q *router.Query) { q.Req.SLO = request.SLO{} }, false},
		{"one is idle", func(q *router.Query) { q.Snap.States[1].Requests = 0 }, false},
		{"one has an empty cache", func(q *router.Query) { q.Snap.States[1].KVUsage = .01 }, false},
		{"one has headroom", func(q *router.Query) { q.Req.SLO.TTFT = 2 * time.Second }, false},
		{"nothing is foretold", func(q *router.Query) { q.Suppose(nil) }, false},
	} {
		q := foretold(slo, [2]float32{1200, 40}, [2]float32{1300, 40})
		for i := range q.Snap.States {
			q.Snap.States[i].KVUsage = .5
		}
		q.Req.Priority = -1
		c.set(q)
		d := &router.Decision{}
		d.Reset()
		err := made(t, "llmd-predicted", router.Params{}).Route(q, d)
		if errors.Is(err, router.ErrSaturated) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLLMDPredictedDraws: the chances are a distribution over candidates, endpoints without headroom
// get 1 % of it beside others, and draws follow it.
func TestLLMDPredictedDraws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		p := made(t, "llmd-predicted", router.Params{})
		d := route(t, p, q)
		var sum float64
		for i, c := range d.Why.Drawn {
			if c > 0 && !q.Keep[i] || c < 0 {
				t.Fatalf("chances %v of candidates %v", d.Why.Drawn, q.Keep)
			}
			sum += float64(c)
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Fatalf("chances %v sum to %v", d.Why.Drawn, sum)
		}
		if d.Why.Reason == router.ByExplore && d.Propensity > 0.01+1e-9 {
			t.Fatalf("explored with propensity %v", d.Propensity)
		}
	})
	const draws = 20_000
	q := foretold(request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}, [2]float32{800, 20}, [2]float32{400, 40}, [2]float32{600, 10}, [2]float32{1500, 60})
	p := made(t, "llmd-predicted", router.Params{})
	want := chances(t, p, q)
	var got [4]float64
	for range draws {
		d := route(t, p, q)
		got[d.Index] += 1. / draws
		if d.Propensity != 0 && math.Abs(d.Propensity-float64(want[d.Index])) > 1e-6 {
			t.Fatalf("propensity %v of endpoint %d, want %v", d.Propensity, d.Index, want[d.Index])
		}
	}
	for i, w := range want {
		if sd := math.Sqrt(float64(w) * (1 - float64(w)) / draws); math.Abs(got[i]-float64(w)) > 5*sd {
			t.Errorf("endpoint %d is drawn with %v, said %v", i, got[i], w)
		}
	}
}

func TestLLMDPredictedAllocates(t *testing.T) {
	q := foretold(request.SLO{TTFT: time.Second, ITL: 50 * time.Millisecond}, make([][2]float32, 100)...)
	fore := q.Forecasts()
	for i := range fore {
		fore[i].TTFT.P90, fore[i].ITL.P90 = float32(1+i)/50, float32(1+i)/1000
	}
	p, d := made(t, "llmd-predicted", router.Params{Fallbacks: 2}), &router.Decision{}
	run := func() {
		d.Reset()
		if err := p.Route(q, d); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations per decision", n)
	}
}
