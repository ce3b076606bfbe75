package router

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var published = map[string]*float64{"prefix": nil, "queue": nil, "kv": nil}

// TestTermsAddUp: for any state and weights, an explanation's terms are weight x score and add up to
// the total that decides; who was filtered has no terms.
func TestTermsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		spec := ProfileSpec{Scorers: map[string]*float64{}}
		for _, name := range ScorerNames() {
			w := rapid.OneOf(rapid.Float64Range(0, 10), rapid.Just(0.0)).Draw(t, name)
			spec.Scorers[name] = &w
		}
		spec.Picker = rapid.SampledFrom(PickerNames()).Draw(t, "picker")
		p, err := NewProfile("any", spec)
		if err != nil {
			t.Fatal(err)
		}
		var d Decision
		d.Reset()
		if err := p.Route(q, &d); err != nil {
			t.Fatal(err)
		}
		if !q.Keep[d.Index] || !(d.Propensity > 0 && d.Propensity <= 1) {
			t.Fatalf("picked %d with propensity %v", d.Index, d.Propensity)
		}
		part := make([]float64, len(q.Keep))
		for i, k := range p.keep {
			sum := 0.0
			for _, v := range d.Why.Row(i) {
				sum += float64(v)
			}
			if math.Abs(sum-float64(d.Why.Totals[i])) > 1e-4 || !k && sum != 0 {
				t.Fatalf("endpoint %d: terms add up to %v, total %v", i, sum, d.Why.Totals[i])
			}
		}
		for c, s := range p.Scorers() {
			s.Score(q, p.keep, part)
			for i, k := range p.keep {
				if want := part[i] * *spec.Scorers[s.Name()]; k && math.Abs(want-float64(d.Why.Row(i)[c])) > 1e-4 {
					t.Fatalf("endpoint %d, %s: term %v, weight x score %v", i, s.Name(), d.Why.Row(i)[c], want)
				}
			}
		}
		if spec.Picker == "max" && d.Why.Reason != ByExplore {
			for i, k := range p.keep {
				if k && d.Why.Totals[i] > d.Why.Totals[d.Index] {
					t.Fatalf("picked %d of total %v, %d has %v", d.Index, d.Why.Totals[d.Index], i, d.Why.Totals[i])
				}
			}
		}
	})
}

// TestB40Weights: unset is the default, zero is no influence, nonsense is refused with its place,
// huge stays finite.
func TestB40Weights(t *testing.T) {
	one := weights("prefix", 1)
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := NewProfile("p", ProfileSpec{Scorers: weights("prefix", bad, "queue", 1, "kv", 1)})
		if err == nil || !strings.HasPrefix(err.Error(), "scorers.prefix: ") {
			t.Errorf("weight %v: error %v", bad, err)
		}
		p := profile(t, ProfileSpec{Scorers: one})
		if p.SetWeights([]float64{bad}) == nil || p.Weights()[0] != 1 {
			t.Errorf("SetWeights took %v: %v", bad, p.Weights())
		}
	}
	p := profile(t, ProfileSpec{Scorers: weights("prefix", nil, "queue", 0, "kv", 2)})
	if w := p.Weights(); w[0] != 3 || w[1] != 0 || w[2] != 2 {
		t.Errorf("unset, 0, 2 became %v", w)
	}

	// A scorer of weight 0 decides nothing, whatever it says.
	q := newQuery(prompt(640), states(2)...)
	q.Hits[0] = 10
	q.Snap.States[1].KVUsage = 0.5
	for range 50 {
		if d := decide(t, profile(t, ProfileSpec{Scorers: weights("prefix", 0, "kv", 1)}), q); d.Index != 0 || d.Why.Row(0)[0] != 0 {
			t.Fatal("weight 0 decided")
		}
	}

	zero := profile(t, ProfileSpec{Scorers: weights("prefix", 0, "queue", 0, "kv", 0)})
	if len(zero.Warnings()) != 1 {
		t.Errorf("all weights 0: warnings %q", zero.Warnings())
	}
	q = newQuery(prompt(640), states(4)...)
	q.Hits[2] = 10
	var count [4]int
	for range 10_000 {
		d := decide(t, zero, q)
		if d.Propensity != 0.25 {
			t.Fatalf("propensity %v", d.Propensity)
		}
		count[d.Index]++
	}
	for i, n := range count {
		if n < 2375 || n > 2625 {
			t.Errorf("all weights 0: endpoint %d has %d of 10,000", i, n)
		}
	}

	q.Snap.States[0].Waiting = 9 // the endpoint that holds the prompt is the best by far
	for _, picker := range PickerNames() {
		huge := profile(t, ProfileSpec{Scorers: weights("prefix", 1e308, "queue", 1e308, "kv", 1), Picker: picker})
		d := decide(t, huge, q)
		for i, total := range d.Why.Totals {
			if math.IsNaN(float64(total)) || math.IsInf(float64(total), 0) {
				t.Errorf("%s: total %v of endpoint %d", picker, total, i)
			}
		}
		if picker == "max" && d.Index != 2 {
			t.Errorf("huge weights pick %d", d.Index)
		}
	}
}

func TestSpecErrors(t *testing.T) {
	two, nan := 2.0, math.NaN()
	ok := weights("prefix", 1)
	for _, c := range []struct {
		spec ProfileSpec
		want string
	}{
		{ProfileSpec{}, "scorers: none given; give a weight to one or more of prefix, lora, session, queue, running, requests, tokens, kv"},
		{ProfileSpec{Scorers: weights("prefx", 1)}, `scorers.prefx: "prefx" unknown; nearest prefix, all: prefix, lora, session, queue, running, requests, tokens, kv`},
		{ProfileSpec{Scorers: ok, Filters: []FilterSpec{{Name: "que"}}}, `filters[0]: "que" unknown; nearest queue, all: stale, adapter, queue, kv`},
		{ProfileSpec{Scorers: ok, Filters: []FilterSpec{{Name: "kv"}, {Name: "kv"}}}, "filters[1]: kv is listed twice; remove one"},
		{ProfileSpec{Scorers: ok, Filters: []FilterSpec{{Name: "kv", Max: &two}}}, "filters[0].max: 2 is not within 0 and 1; leave it out for 0.8"},
		{ProfileSpec{Scorers: ok, Filters: []FilterSpec{{Name: "queue", Max: &nan}}}, "filters[0].max: NaN is not within 0 and 2.147483647e+09; leave it out for 5"},
		{ProfileSpec{Scorers: ok, Filters: []FilterSpec{{Name: "stale", Max: &two}}}, "filters[0].max: the stale filter has no limit; remove it"},
		{ProfileSpec{Scorers: ok, Picker: "mx"}, `picker: "mx" unknown; nearest max, all: max, weighted-random, epsilon-greedy`},
		{ProfileSpec{Scorers: ok, Picker: "epsilon-greedy", Epsilon: &two}, "epsilon: 2 is no share; give one within 0 and 1"},
		{ProfileSpec{Scorers: ok, Epsilon: &two}, "epsilon: the max picker draws no exploratory picks; choose epsilon-greedy or remove it"},
		{ProfileSpec{Scorers: ok, Fallbacks: -1}, "fallbacks: -1 is negative; 0 means none"},
		{ProfileSpec{Scorers: ok, MaxAge: -time.Second}, "max_age: -1s is negative; leave it out for 5s"},
	} {
		if _, err := NewProfile("p", c.spec); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestB26TiesSpread: at equal state nobody piles up, and a loaded endpoint gets next to nothing.
func TestB26TiesSpread(t *testing.T) {
	p := profile(t, ProfileSpec{Scorers: published})
	q := newQuery(prompt(5), states(4)...) // shorter than a block: nothing can be cached
	var count [4]int
	for range 400 {
		d := decide(t, p, q)
		count[d.Index]++
		if d.Why.Reason != ByTie {
			t.Fatalf("reason %s", d.Why.Reason)
		}
	}
	for i, n := range count {
		if n < 60 || n > 140 {
			t.Errorf("endpoint %d has %d of 400", i, n)
		}
	}
	q.Snap.States[0].Waiting = 50
	loaded := 0
	for range 400 {
		if decide(t, p, q).Index == 0 {
			loaded++ // a probe, see TestB23FrozenGauges
		}
	}
	if loaded > 400*5/100 {
		t.Errorf("the loaded endpoint got %d of 400", loaded)
	}
}

// TestB18PickIsAmongFiniteScores: an endpoint with nonsense on its page is picked by what is known of it.
func TestB18PickIsAmongFiniteScores(t *testing.T) {
	p := profile(t, ProfileSpec{Scorers: weights("prefix", 3, "queue", 2, "kv", 2, "running", 1)})
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		var d Decision
		d.Reset()
		if err := p.Route(q, &d); err != nil {
			t.Fatal(err)
		}
		for i, v := range d.Why.Values {
			if math.IsNaN(float64(v)) || v < 0 || v > 3 {
				t.Fatalf("term %d is %v", i, v)
			}
		}
	})
}

// TestSaturated: filters that leave nobody refuse the request, and say who was left out by what.
func TestSaturated(t *testing.T) {
	p := profile(t, ProfileSpec{Scorers: published, Filters: []FilterSpec{{Name: "queue"}, {Name: "kv"}}})
	q := newQuery(prompt(64), states(2)...)
	q.Snap.States[0].Waiting, q.Snap.States[1].KVUsage = 6, 0.9
	var d Decision
	d.Reset()
	if err := p.Route(q, &d); !errors.Is(err, ErrSaturated) {
		t.Fatalf("error %v", err)
	}
	if d.Why.Filtered[0] != "queue" || d.Why.Filtered[1] != "kv" {
		t.Errorf("left out by %q", d.Why.Filtered)
	}
}

// frozen drives a profile for a minute at 50 requests a second over three endpoints of which the
// first n report a load they no longer have. It returns the requests each got, and when the first
// one came to endpoint 0.
func frozen(t *testing.T, n int, filters []FilterSpec) (got [3]int, first time.Duration, refused int) {
	p := profile(t, ProfileSpec{Scorers: published, Filters: filters})
	q := newQuery(prompt(64), states(3)...)
	for i := range q.Snap.States {
		s := &q.Snap.States[i]
		s.LastEnd = t0.Add(-10 * time.Second)
		s.Running, s.KVUsage = 50, 0.45
		if i < n {
			s.Running, s.Waiting, s.KVUsage = 106, 15, 0.904
		}
	}
	for tick := range 60 * 50 {
		now := t0.Add(time.Duration(tick) * 20 * time.Millisecond)
		q.Now = now
		for i := range q.Snap.States {
			s := &q.Snap.States[i]
			s.At = now // the page keeps coming, and keeps saying the same
			if s.Requests > 0 && now.Sub(s.LastBegin) >= time.Second {
				s.Requests, s.LastEnd = 0, now
			}
		}
		var d Decision
		d.Reset()
		if err := p.Route(q, &d); err != nil {
			if !errors.Is(err, ErrSaturated) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		s := &q.Snap.States[d.Index]
		s.Requests++
		s.LastBegin = now
		got[d.Index]++
		if d.Index == 0 && got[0] == 1 {
			first = now.Sub(t0)
			if d.Why.Reason != ByExplore || d.Propensity != 1 {
				t.Errorf("reason %s, propensity %v", d.Why.Reason, d.Propensity)
			}
		}
	}
	return got, first, refused
}

// TestB23FrozenGauges: an endpoint whose gauges froze at "full" is tried again within 30 s of its
// ledger being empty, at the price of a handful of requests; so are all of them when all froze.
func TestB23FrozenGauges(t *testing.T) {
	got, first, refused := frozen(t, 1, nil)
	if got[0] == 0 || got[0] > 6 || first > 30*time.Second || refused != 0 {
		t.Errorf("frozen endpoint got %v, first after %s, refused %d", got, first, refused)
	}
	got, first, refused = frozen(t, 3, []FilterSpec{{Name: "queue"}, {Name: "kv"}})
	for i, n := range got {
		if n < 2 || n > 6 {
			t.Errorf("all frozen: endpoint %d got %d requests in a minute", i, n)
		}
	}
	if first > 30*time.Second || refused == 0 {
		t.Errorf("all frozen: first after %s, refused %d", first, refused)
	}
}

// TestProbesAreRare: where there is little traffic of ours beside that of others, pages are right
// and nobody is probed.
func TestProbesAreRare(t *testing.T) {
	p := profile(t, ProfileSpec{Scorers: published})
	q := newQuery(prompt(640), states(3)...)
	q.Hits[1] = 10
	for i := range q.Snap.States {
		q.Snap.States[i].Running = 5
	}
	for minute := range 60 {
		q.Now = t0.Add(time.Duration(minute) * time.Minute)
		for i := range q.Snap.States {
			q.Snap.States[i].At = q.Now
		}
		if d := decide(t, p, q); d.Index != 1 {
			t.Fatalf("minute %d: picked %d for %s", minute, d.Index, d.Why.Reason)
		}
	}
	// Pages that claim nothing are believed: an idle endpoint without the prompt needs no trial.
	p = profile(t, ProfileSpec{Scorers: published})
	for i := range q.Snap.States {
		q.Snap.States[i].Running = 0
	}
	for tick := range 10_000 {
		q.Now = t0.Add(time.Duration(tick) * time.Second)
		for i := range q.Snap.States {
			q.Snap.States[i].At = q.Now
		}
		if d := decide(t, p, q); d.Index != 1 {
			t.Fatalf("tick %d: picked %d for %s", tick, d.Index, d.Why.Reason)
		}
	}
	for i := range q.Snap.States {
		q.Snap.States[i].Running = 5
	}
	off := profile(t, ProfileSpec{Scorers: published, Probe: -1})
	for tick := range 10_000 {
		q.Now = t0.Add(time.Duration(tick) * time.Second)
		q.Snap.States[1].LastBegin = q.Now
		for i := range q.Snap.States {
			q.Snap.States[i].At = q.Now
		}
		if d := decide(t, off, q); d.Index != 1 {
			t.Fatalf("tick %d: a profile that never probes picked %d", tick, d.Index)
		}
	}
}

// TestFallbackFollowsTheOrder: the further endpoints are the next best, then those a filter left out.
func TestFallbackFollowsTheOrder(t *testing.T) {
	p := profile(t, ProfileSpec{Scorers: weights("kv", 1), Filters: []FilterSpec{{Name: "queue"}}, Fallbacks: 9})
	q := newQuery(prompt(64), states(7)...)
	for i, kv := range []float32{0.5, 0.1, 0, 0.3, 0, 0, 0} {
		q.Snap.States[i].KVUsage = kv
	}
	for _, i := range []int{2, 5, 6} { // saturated, with 3, 1 and 2 requests of ours
		q.Snap.States[i].Waiting, q.Snap.States[i].Requests = 99, []int32{2: 3, 5: 1, 6: 2}[i]
	}
	q.Keep[4] = false
	d := decide(t, p, q)
	if want := []int{3, 0, 5, 6, 2}; d.Index != 1 || !equal(d.Fallback, want) {
		t.Errorf("picked %d, then %v; want 1, then %v", d.Index, d.Fallback, want)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestProfileDoesNotAllocate: a decision among 100 endpoints, with every scorer, costs no memory.
func TestProfileDoesNotAllocate(t *testing.T) {
	for _, picker := range PickerNames() {
		all := map[string]*float64{}
		for _, s := range ScorerNames() {
			all[s] = nil
		}
		p := profile(t, ProfileSpec{Scorers: all, Picker: picker, Fallbacks: 3,
			Filters: []FilterSpec{{Name: "stale"}, {Name: "adapter"}, {Name: "queue"}, {Name: "kv"}}})
		q := newQuery(prompt(6400), states(100)...)
		q.Req.Session, q.Req.Adapter = "s", "a"
		for i := range q.Snap.States {
			q.Snap.States[i].RunningLoRA = []string{"a"}
			q.Hits[i] = int32(i)
		}
		var d Decision
		run := func() {
			d.Reset()
			if err := p.Route(q, &d); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations per decision", picker, n)
		}
	}
}

// TestOrderOfSpecDoesNotMatter: filters in any order leave the same candidates.
func TestOrderOfSpecDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := anyQuery(t)
		for i := range q.Snap.States { // the order matters only to who is named when the lenient ones differ
			q.Snap.States[i].At = t0
		}
		specs := rapid.Permutation([]FilterSpec{{Name: "stale"}, {Name: "queue"}, {Name: "kv"}}).Draw(t, "filters")
		a, errA := NewProfile("a", ProfileSpec{Scorers: published, Filters: specs})
		b, errB := NewProfile("b", ProfileSpec{Scorers: published, Filters: []FilterSpec{{Name: "kv"}, {Name: "queue"}, {Name: "stale"}}})
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		var da, db Decision
		da.Reset()
		db.Reset()
		errA, errB = a.Route(q, &da), b.Route(q, &db)
		if !errors.Is(errA, errB) {
			t.Fatalf("%v and %v", errA, errB)
		}
		for i := range a.keep {
			if a.keep[i] != b.keep[i] {
				t.Fatalf("endpoint %d is kept: %t and %t", i, a.keep[i], b.keep[i])
			}
		}
	})
}

// sloppy is a scorer that breaks its contract: it says nothing of the first endpoint and nonsense of others.
type sloppy struct{}

func (sloppy) Name() string       { return "sloppy" }
func (sloppy) Category() Category { return Distribution }
func (sloppy) Score(_ *Query, _ []bool, out []float64) {
	out[1], out[2], out[3], out[4] = math.NaN(), -5, 7, math.Inf(1)
}

// TestB40SloppyScorer: what a scorer leaves out or gets wrong counts nothing, at most 1, and never
// leaks from the scorer before it.
func TestB40SloppyScorer(t *testing.T) {
	p := profile(t, ProfileSpec{Scorers: weights("kv", 1), Probe: -1})
	p.scorers, p.weights, p.terms = append(p.scorers, sloppy{}), append(p.weights, 2), append(p.terms, "sloppy")
	d := decide(t, p, newQuery(prompt(64), states(5)...))
	for i, want := range []float32{0, 0, 0, 2, 2} {
		if got := d.Why.Row(i)[1]; got != want {
			t.Errorf("endpoint %d: %v, want %v", i, got, want)
		}
	}
}
