package baseline

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// TestArgminFormulas: each rule of one cost picks among the endpoints for which its published
// formula, written out again here, is lowest, with one over their number as propensity.
func TestArgminFormulas(t *testing.T) {
	formulas := map[string]func(q *router.Query, i int) float64{
		"least-request":  func(q *router.Query, i int) float64 { return float64(q.Snap.States[i].Requests) },
		"always-busiest": func(q *router.Query, i int) float64 { return -float64(q.Snap.States[i].Requests) },
		"lmetric": func(q *router.Query, i int) float64 {
			s := q.Snap.States[i]
			u := float64(q.Req.PromptTokens) * (1 - q.HitRatio(i))
			return math.Round(float64(s.Uncached)+u) * float64(s.Requests+1)
		},
		"dynamo-linear": func(q *router.Query, i int) float64 {
			s := q.Snap.States[i]
			raw := float64(s.Uncached)/16 + float64(q.Req.PromptTokens)/16
			credit := float64(q.Req.CachedTokens(int(q.Hits[i]))) / 16
			return max(0, raw-credit) + float64(s.PendingTokens+s.Context)/16
		},
	}
	for name, cost := range formulas {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				q := anyQuery(t)
				d := route(t, made(t, name, router.Params{}), q)
				got, want := cost(q, d.Index), argmin(q, func(i int) float64 { return cost(q, i) })
				if math.Abs(got-cost(q, want[0])) > 1e-6 {
					t.Fatalf("picked %d of cost %v; lowest is %d of %v", d.Index, got, want[0], cost(q, want[0]))
				}
				if len(want) > 1 && math.Abs(d.Propensity-1/float64(len(want))) > 1e-9 {
					t.Fatalf("propensity %v among %d equals", d.Propensity, len(want))
				}
			})
		})
	}
}

// TestTwoChoicesChance compares the closed form with the enumeration of all pairs.
func TestTwoChoicesChance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		d := route(t, made(t, "p2c", router.Params{}), q)
		var c []int
		for i, k := range q.Keep {
			if k {
				c = append(c, i)
			}
		}
		if len(c) == 1 {
			return
		}
		pairs, wins := 0.0, 0.0
		for a := range c {
			for b := range a {
				pairs++
				x, y := c[a], c[b]
				nx, ny := q.Snap.States[x].Requests, q.Snap.States[y].Requests
				switch {
				case x == d.Index && nx < ny, y == d.Index && ny < nx:
					wins++
				case (x == d.Index || y == d.Index) && nx == ny:
					wins += 0.5
				}
			}
		}
		if math.Abs(d.Propensity-wins/pairs) > 1e-12 {
			t.Fatalf("propensity %v, by enumeration %v", d.Propensity, wins/pairs)
		}
	})
}

// TestRoundRobinIsFair: over an unchanging set each gets its turn in every round, in the same order;
// over changing candidates nobody that could have been picked waits more than two rounds.
func TestRoundRobinIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		p := made(t, "round-robin", router.Params{Seed: rapid.Uint64().Draw(t, "seed")})
		q := newQuery(&request.Request{}, n)
		var order []int
		for round := range 3 {
			var this []int
			for range n {
				this = append(this, route(t, p, q).Index)
			}
			if round == 0 {
				order = this
			}
			if !slices.Equal(order, this) {
				t.Fatalf("round %d is %v, the first was %v", round, this, order)
			}
		}
		slices.Sort(order)
		for i, e := range order {
			if i != e {
				t.Fatalf("a round is %v", order)
			}
		}
		waited := make([]int, n)
		for range 20 * n {
			for i := range q.Keep {
				q.Keep[i] = rapid.Bool().Draw(t, "keep")
			}
			q.Keep[rapid.IntRange(0, n-1).Draw(t, "kept")] = true
			d := route(t, p, q)
			for i, k := range q.Keep {
				if k {
					waited[i]++
				}
				if waited[i] > 2*n {
					t.Fatalf("endpoint %d was passed over %d times", i, waited[i])
				}
			}
			waited[d.Index] = 0
		}
	})
}

// TestRoundRobinSharesAcrossModels: two models on two pairs of endpoints in alternation, the trap of
// one moving pointer, still rotate within each pair.
func TestRoundRobinSharesAcrossModels(t *testing.T) {
	p := made(t, "round-robin", router.Params{})
	q := newQuery(&request.Request{}, 4)
	var count [4]int
	for n := range 100 {
		first := n%2 == 0
		for i := range q.Keep {
			q.Keep[i] = (i < 2) == first
		}
		count[route(t, p, q).Index]++
	}
	if count != [4]int{25, 25, 25, 25} {
		t.Errorf("picks %v", count)
	}
}

// TestSticky follows the affinity filter through its cases.
func TestSticky(t *testing.T) {
	newQ := func() *router.Query {
		q := newQuery(&request.Request{Model: "demo", PromptTokens: 6400, PromptBytes: 25600, BlockSize: 256, Choices: 1}, 3)
		q.Hits[0] = 80 // 80 % of 100 blocks
		return q
	}
	gap := int64(18 * stickyPeakPrefill)
	cases := []struct {
		name     string
		set      func(q *router.Query)
		token    []int // where llmd-sticky-token may go
		active   []int // where llmd-active may go
		filtered bool
	}{
		{"stays where the prompt is", func(*router.Query) {}, []int{0}, []int{0}, true},
		{"below 80 % is no affinity", func(q *router.Query) { q.Hits[0] = 79 }, []int{0}, []int{0, 1, 2}, false},
		{"stays however busy, up to 18 s", func(q *router.Query) { q.Snap.States[0].Uncached, q.Snap.States[0].Requests = gap, 9 }, []int{0}, []int{0}, true},
		{"leaves beyond 18 s", func(q *router.Query) { q.Snap.States[0].Uncached, q.Snap.States[0].Requests = gap+1, 9 }, []int{1, 2}, []int{1, 2}, false},
		{"waits 36 s with images", func(q *router.Query) { q.Snap.States[0].Uncached, q.Req.MediaUnits = 2*gap, 1 }, []int{0}, []int{0}, true},
		{"measures against the least busy of the rest", func(q *router.Query) {
			q.Snap.States[0].Uncached, q.Snap.States[1].Uncached, q.Snap.States[2].Uncached = gap+1, 5, 1
		}, []int{0}, []int{0}, true},
		{"stays when everybody is sticky", func(q *router.Query) { q.Hits[1], q.Hits[2], q.Snap.States[0].Uncached = 80, 80, 10*gap }, []int{1, 2}, []int{0, 1, 2}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for name, want := range map[string][]int{"llmd-sticky-token": c.token, "llmd-active": c.active} {
				q := newQ()
				c.set(q)
				p := made(t, name, router.Params{})
				seen := map[int]bool{}
				for range 60 {
					d := route(t, p, q)
					seen[d.Index] = true
					if got := slices.Contains(d.Why.Filtered, "not sticky"); got != c.filtered {
						t.Fatalf("%s: left out %q", name, d.Why.Filtered)
					}
				}
				for i := range 3 {
					if seen[i] != slices.Contains(want, i) {
						t.Errorf("%s goes to %v, want %v", name, seen, want)
					}
				}
			}
		})
	}
	// A calibrated peak moves the limit in tokens: 18 s at 1,000 tokens/s.
	q := newQ()
	q.Snap.States[0].Uncached = 18_001
	if d := route(t, made(t, "llmd-sticky-token", router.Params{PeakPrefill: 1000}), q); d.Index == 0 {
		t.Error("the given peak is not used")
	}
}

func TestSMGCacheAware(t *testing.T) {
	cases := []struct {
		name     string
		requests []int32
		begun    []uint64
		hits     []int32 // of 10 blocks
		want     int
	}{
		{"longest match wins", []int32{5, 0, 0}, []uint64{0, 0, 0}, []int32{10, 9, 0}, 0},
		{"a match of 30 % is too short", []int32{5, 4, 9}, []uint64{0, 0, 0}, []int32{3, 0, 0}, 1},
		{"above 30 % decides", []int32{5, 4, 9}, []uint64{0, 0, 0}, []int32{4, 0, 0}, 0},
		{"equal matches go by load", []int32{5, 4, 9}, []uint64{0, 0, 0}, []int32{10, 10, 10}, 1},
		{"no match goes by load, then by requests ever, then by index", []int32{1, 1, 1}, []uint64{2, 1, 1}, []int32{0, 0, 0}, 1},
		{"uneven load overrides the match", []int32{100, 35, 36}, []uint64{0, 0, 0}, []int32{10, 0, 0}, 1},
		{"a difference of 64 is not uneven", []int32{99, 35, 36}, []uint64{0, 0, 0}, []int32{10, 0, 0}, 0},
		{"a ratio of 1.5 is not uneven", []int32{300, 200, 200}, []uint64{0, 0, 0}, []int32{10, 0, 0}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q := newQuery(&request.Request{Model: "demo", PromptTokens: 1000, PromptBytes: 2560, BlockSize: 256, Choices: 1}, 3)
			for i := range c.requests {
				q.Snap.States[i].Requests, q.Snap.States[i].Begun, q.Hits[i] = c.requests[i], c.begun[i], c.hits[i]
			}
			d := route(t, made(t, "smg-cache-aware", router.Params{}), q)
			if d.Index != c.want || d.Propensity != 1 {
				t.Errorf("picked %d with propensity %v, want %d", d.Index, d.Propensity, c.want)
			}
		})
	}
}

// TestSMGLeastLoad checks the seconds charged, with throughput learned from the engines' counters.
func TestSMGLeastLoad(t *testing.T) {
	p := made(t, "smg-least-load", router.Params{})
	q := newQuery(&request.Request{Model: "demo", PromptTokens: 1000, PromptBytes: 4000, BlockSize: 256, Choices: 1}, 3)
	costs := func() []float32 { return slices.Clone(route(t, p, q).Why.Totals) }
	page := func(i int, at time.Time, generated float64, kv float32) {
		q.Snap.States[i].Load = &fleet.Load{At: at, Known: fleet.KnowKV | fleet.KnowTokens, Generated: generated, KVUsage: kv}
	}
	for i, u := range []int64{4000, 2000, 0} {
		q.Snap.States[i].Uncached = u
		page(i, t0, 1000, []float32{0, 0.5, 1}[i])
	}
	// 4,000/2,000; 2,000/2,000 + .15; .15*.999/.001
	want := []float32{2, 1.15, 149.85}
	near(t, "from defaults", costs(), want)

	q.Now = t0.Add(5 * time.Second)
	page(0, q.Now, 1000+5*8000, 0) // 8,000 tokens/s
	page(1, q.Now, 10, 0.5)        // restarted: not known
	page(2, q.Now, 1000, 1)        // idle: no throughput to speak of
	near(t, "learned", costs(), []float32{0.5, 1.15, 149.85})

	// Without a page: requests times a mean prompt over the fleet's mean throughput, (8,000+2,000)/2.
	q.Snap.States[2].Load = &fleet.Load{}
	q.Snap.States[2].Requests = 10
	near(t, "one dark", costs(), []float32{0.5, 1.15, 10 * 1024 / 5000.})

	for i := range q.Snap.States {
		q.Snap.States[i].Load = &fleet.Load{}
		q.Snap.States[i].Requests = []int32{4, 5, 3}[i]
	}
	if d := route(t, p, q); d.Index != 2 {
		t.Errorf("all dark: picked %d, the shortest queue is 2", d.Index)
	}
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-3*math.Abs(float64(want[i])) {
			t.Errorf("%s: costs %v, want %v", what, got, want)
			return
		}
	}
}

// TestAIBrixPrefix rebuilds the choice by sorting, as the formula says it.
func TestAIBrixPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		d := route(t, made(t, "aibrix-prefix", router.Params{}), q)
		load := func(i int) float64 { return float64(q.Snap.States[i].Requests) }
		var all []int
		for i, k := range q.Keep {
			if k {
				all = append(all, i)
			}
		}
		mean, sigma := 0.0, 0.0
		for _, i := range all {
			mean += load(i) / float64(len(all))
		}
		for _, i := range all {
			sigma += (load(i) - mean) * (load(i) - mean) / float64(len(all))
		}
		sigma = math.Sqrt(sigma)
		slices.SortFunc(all, func(a, b int) int { return int(load(a) - load(b)) })
		fewest := load(all[0])
		if load(all[len(all)-1])-fewest > 8 {
			all = slices.DeleteFunc(all, func(i int) bool { return load(i) > fewest })
		}
		slices.SortStableFunc(all, func(a, b int) int { return int(q.Hits[b] - q.Hits[a]) })
		want, hit := fewest, int32(-1)
		for _, i := range all {
			if q.Hits[i] > 0 && load(i) <= mean+sigma+1e-9 {
				want, hit = load(i), q.Hits[i]
				break
			}
		}
		if load(d.Index) != want || hit >= 0 && q.Hits[d.Index] != hit {
			t.Fatalf("picked %d (load %v, hits %d), want load %v, hits %d", d.Index, load(d.Index), q.Hits[d.Index], want, hit)
		}
	})
}

// TestWeightedIsThreeTwoTwo writes out the published sum.
func TestWeightedIsThreeTwoTwo(t *testing.T) {
	for _, name := range []string{"weighted", "llmd-weighted"} {
		rapid.Check(t, func(t *rapid.T) {
			q := anyQuery(t)
			lo, hi := int32(math.MaxInt32), int32(0)
			for i := range q.Snap.States {
				s := &q.Snap.States[i]
				s.Load = &fleet.Load{At: t0, Known: fleet.KnowKV | fleet.KnowWaiting, KVUsage: s.KVUsage, Waiting: s.Requests}
				if q.Keep[i] {
					lo, hi = min(lo, s.Waiting), max(hi, s.Waiting)
				}
			}
			d := route(t, made(t, name, router.Params{}), q)
			for i, k := range q.Keep {
				if !k {
					continue
				}
				s, queue := q.Snap.States[i], 1.0
				if hi > lo {
					queue = float64(hi-s.Waiting) / float64(hi-lo)
				}
				want := 3*q.HitRatio(i) + 2*queue + 2*(1-float64(s.KVUsage))
				if math.Abs(want-float64(d.Why.Totals[i])) > 1e-5 {
					t.Fatalf("endpoint %d scores %v, want %v", i, d.Why.Totals[i], want)
				}
				if d.Why.Totals[i] > d.Why.Totals[d.Index] {
					t.Fatalf("picked %d, %d scores more", d.Index, i)
				}
			}
		})
	}
}
