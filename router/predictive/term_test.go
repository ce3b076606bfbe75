package predictive

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// TestTermsAreThePrices: each column is what the rule says it is, and together they are the total, to
// half a millisecond, for one, two and a thousand candidates.
func TestTermsAreThePrices(t *testing.T) {
	for _, n := range []int{1, 2, 1000} {
		property := func(t *rapid.T) {
			q, fore := anyQuery(t, n)
			d := route(t, made(t, "predictive"), q)
			for i, k := range q.Keep {
				if !k {
					continue
				}
				p, row := &fore[i].Price, d.Why.Row(i)
				var sum float64
				own := min(1e3*float64(p.Prefill), 1e3*float64(p.First))
				for c, want := range []float64{
					own, 1e3*float64(p.First) - own, knobKV.Default * 1e3 * float64(p.KVWait), 0, knobDecode.Default * 1e3 * float64(max(q.Req.Choices, 1)) * float64(p.Decode),
					knobStall.Default * 1e3 * float64(p.Prefill) * float64(q.Snap.States[i].Streaming), 0,
				} {
					sum += want
					if math.Abs(want-float64(row[c])) > 1e-3+1e-6*want {
						t.Fatalf("%s of endpoint %d: %v ms, want %v", d.Why.Terms[c], i, row[c], want)
					}
				}
				if math.Abs(sum-float64(d.Why.Totals[i])) > 0.5 {
					t.Fatalf("endpoint %d: terms add up to %v ms, total %v", i, sum, d.Why.Totals[i])
				}
			}
		}
		if n < 1000 {
			rapid.Check(t, property)
			continue
		}
		q, fore := newQuery(n) // one query of a thousand is enough, and drawing it by rapid is slow
		for i := range fore {
			fore[i].Price.First += float32((i*7919)%n) / 1e3
			q.Snap.States[i].Streaming = int32(i % 50)
			q.Snap.States[i].Requests = q.Snap.States[i].Streaming
		}
		d := route(t, made(t, "predictive"), q)
		for i := range fore {
			if d.Why.Totals[i] < d.Why.Totals[d.Index] {
				t.Errorf("picked %d at %v ms, %d costs %v", d.Index, d.Why.Totals[d.Index], i, d.Why.Totals[i])
			}
			want := 1e3*float64(fore[i].Price.First) + 1200 + 0.2*150*float64(i%50)
			if math.Abs(want-float64(d.Why.Totals[i])) > 0.5 {
				t.Fatalf("endpoint %d: total %v ms, want %v", i, d.Why.Totals[i], want)
			}
		}
	}
}

// TestArgminTTFT: the rule that predictors are usually used for has one term and takes its least.
func TestArgminTTFT(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, fore := anyQuery(t, rapid.IntRange(1, 9).Draw(t, "endpoints"))
		q.Req.SLO = anySLO(t)
		d := route(t, made(t, "argmin-ttft"), q)
		cost := func(i int) float32 { return fore[i].Price.First + fore[i].Price.KVWait }
		for i, k := range q.Keep {
			if k && cost(i) < cost(d.Index)*(1-1e-5) {
				t.Fatalf("picked %d at %v s, %d has %v", d.Index, cost(d.Index), i, cost(i))
			}
		}
	})
}

// TestB18NotForetold: a candidate of whom nothing finite is foretold is picked only if that is so of all,
// and nothing of it reaches the others' costs or the explanation.
func TestB18NotForetold(t *testing.T) {
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, math.MaxFloat32, -math.MaxFloat32}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "endpoints")
		q, fore := anyQuery(t, n)
		q.Req.SLO = anySLO(t)
		broken := make([]bool, n)
		good := 0
		for i := range fore {
			f := &fore[i]
			place := rapid.IntRange(-3, 9).Draw(t, "place")
			if place >= 0 {
				v := rapid.SampledFrom(bad).Draw(t, "value")
				*[]*float32{&f.Price.First, &f.Price.KVWait, &f.Price.Decode, &f.Price.Prefill, &f.Price.Sigma, &f.Price.Gap,
					&f.TTFT.P50, &f.TTFT.P90, &f.ITL.P50, &f.ITL.P90}[place] = v
				broken[i] = place < 4 && v != 0 && !(place == 3 && q.Snap.States[i].Streaming == 0 && !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0))
			}
			if q.Keep[i] && !broken[i] {
				good++
			}
		}
		d := route(t, made(t, "predictive"), q)
		if good > 0 && broken[d.Index] {
			t.Fatalf("picked %d of whom %+v is foretold", d.Index, fore[d.Index].Price)
		}
		for _, v := range append(d.Why.Values, d.Why.Totals...) {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("explained by %v", d.Why.Values)
			}
		}
	})
}

// TestNothingForetold: without a predictor the least product of uncached tokens and requests wins,
// near ties going to the cache; never a constant, whatever the request's hash.
func TestNothingForetold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, _ := anyQuery(t, rapid.IntRange(1, 9).Draw(t, "endpoints"))
		q.Suppose(nil)
		d := route(t, made(t, rapid.SampledFrom([]string{"predictive", "argmin-ttft"}).Draw(t, "policy")), q)
		cost := func(i int) float64 {
			s := &q.Snap.States[i]
			return (float64(s.Uncached) + float64(q.UncachedTokens(i)) + 1) * float64(s.Requests+1)
		}
		for i, k := range q.Keep {
			if k && cost(d.Index) > cost(i)*math.Exp(leastMargin)*(1+1e-9) {
				t.Fatalf("picked %d at %v, %d costs %v", d.Index, cost(d.Index), i, cost(i))
			}
		}
		if d.Why.Unit != "tokens" || len(d.Why.Terms) != 1 {
			t.Fatalf("explained in %s by %v", d.Why.Unit, d.Why.Terms)
		}
	})
	seen := map[int]bool{}
	for tie := range uint64(100) {
		q, _ := newQuery(4)
		q.Suppose(nil)
		q.Tie = tie
		seen[route(t, made(t, "predictive"), q).Index] = true
	}
	if len(seen) != 4 {
		t.Errorf("a hundred cold requests went to %v of 4 idle endpoints", seen)
	}
}

// TestRouteAllocatesNothing, with forecasts, without them, and with SLOs.
func TestRouteAllocatesNothing(t *testing.T) {
	for name, set := range map[string]func(q *router.Query, fore []features.Forecast){
		"foretold": func(*router.Query, []features.Forecast) {},
		"nothing":  func(q *router.Query, _ []features.Forecast) { q.Suppose(nil) },
		"slo":      func(q *router.Query, _ []features.Forecast) { q.Req.SLO.TTFT, q.Req.SLO.ITL = 1e8, 1e7 },
	} {
		q, fore := newQuery(100)
		set(q, fore)
		p, d := made(t, "predictive"), &router.Decision{}
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

// TestAdapterWaitsForAnAnswerToEnd: where all slots hold other adapters the request waits for half an
// answer; where its adapter runs, is about to, has a free slot, or where the page tells nothing, it does not.
func TestAdapterWaitsForAnAnswerToEnd(t *testing.T) {
	for name, c := range map[string]struct {
		asked            string
		running, waiting []string
		known            fleet.Known
		age              time.Duration
		want             float32
	}{
		"others":      {"a", []string{"b", "c"}, nil, fleet.KnowLoRA, 0, 3000},
		"coming":      {"a", []string{"b"}, []string{"c"}, fleet.KnowLoRA, 0, 3000},
		"runs":        {"a", []string{"a", "c"}, nil, fleet.KnowLoRA, 0, 0},
		"waits":       {"a", []string{"b"}, []string{"a"}, fleet.KnowLoRA, 0, 0},
		"room":        {"a", []string{"b"}, nil, fleet.KnowLoRA, 0, 0},
		"none asked":  {"", []string{"b", "c"}, nil, fleet.KnowLoRA, 0, 0},
		"not told":    {"a", []string{"b", "c"}, nil, 0, 0, 0},
		"old figures": {"a", []string{"b", "c"}, nil, fleet.KnowLoRA, time.Minute, 0},
	} {
		q, fore := newQuery(2)
		q.Req.Adapter = c.asked
		fore[0].Price.Decode = 6
		s := &q.Snap.States[0]
		s.Known, s.MaxLoRA, s.RunningLoRA, s.WaitingLoRA, s.At = c.known, 2, c.running, c.waiting, q.Now.Add(-c.age)
		if got := route(t, made(t, "predictive"), q).Why.Row(0)[termAdapter]; got != c.want {
			t.Errorf("%s: %v ms, want %v", name, got, c.want)
		}
	}
}

// TestNegativePriorityYields: a batch request goes where it stalls nobody though its answer will be
// slower there; the same request of priority 0 or more does not, nor where it may not yield.
func TestNegativePriorityYields(t *testing.T) {
	for _, c := range []struct {
		name     string
		priority int
		want     int
	}{
		{"predictive", 0, 0},
		{"predictive", 10, 0},
		{"predictive", -1, 1},
		{"predictive", -10, 1},
		{"predictive:yield=1", -10, 0},
	} {
		q, fore := newQuery(2)
		q.Req.Priority = c.priority
		fore[0].Price = features.Price{First: .5, Prefill: .4, Gap: .02, Decode: 6}
		fore[1].Price = features.Price{First: .5, Prefill: .4, Gap: .04, Decode: 12}
		q.Snap.States[0].Streaming, q.Snap.States[1].Streaming = 10, 2
		if d := route(t, made(t, c.name), q); d.Index != c.want {
			t.Errorf("%s, priority %d: picked %d, costs %v", c.name, c.priority, d.Index, d.Why.Totals)
		}
	}
}
