package adaptive

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

var routerParams = router.Params{}

// herd sends n requests for one new prompt within 200 ms and returns the largest number that one of
// 8 endpoints got.
func herd(t *testing.T, p router.Policy, n int) int {
	x := newPool(t, 8, p)
	for i := range 50 {
		x.scrape(t0.Add(time.Duration(i) * 200 * time.Millisecond))
	}
	start := t0.Add(10 * time.Second)
	for i := range n {
		x.ask(start.Add(time.Duration(i)*200*time.Millisecond/time.Duration(n)), prompt(1, 8192), time.Second, 5*time.Second)
	}
	return slices.Max(x.placed)
}

// TestHerdSpreads: a wave that is over before the next scrape is spread all the same, where fixed
// weights send all of it after the first request.
func TestHerdSpreads(t *testing.T) {
	fixed, err := baseline.Policies().New("weighted", routerParams)
	if err != nil {
		t.Fatal(err)
	}
	if got := herd(t, fixed, 250); got != 250 {
		t.Errorf("fixed weights put %d of 250 on one endpoint: no herd to test with", got)
	}
	p := policy(t)
	if got := herd(t, p, 250); got > 60 {
		t.Errorf("%d of 250 on one endpoint", got)
	}
	s := p.Status()
	if s.Regime != router.Distribution || s.Switches != [2]uint64{0, 1} || s.Differing == 0 {
		t.Errorf("%+v", s)
	}
	log := p.Changes(0, nil)
	if len(log) == 0 || log[0].Cause != "burst" || !log[0].Rose || log[0].To != router.Distribution || log[0].Seq != 1 {
		t.Fatalf("log %+v", log)
	}
	if got, want := log[0].String(), "burst towards distribution; regime affinity -> distribution"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := p.Changes(log[0].Seq, nil); len(got) != len(log)-1 {
		t.Errorf("%d changes after the first of %d", len(got), len(log))
	}
}

// TestReturnsToRest: when the wave is over, the weights come back, and in the end the regime does.
func TestReturnsToRest(t *testing.T) {
	p := policy(t)
	rest := p.Status()
	x := newPool(t, 8, p)
	for i := range 50 {
		x.scrape(t0.Add(time.Duration(i) * 200 * time.Millisecond))
	}
	start := t0.Add(10 * time.Second)
	for i := range 250 {
		x.ask(start.Add(time.Duration(i)*800*time.Microsecond), prompt(1, 8192), time.Second, 5*time.Second)
	}
	if s := p.Status(); s.Share <= rest.Share {
		t.Fatalf("share %v, at rest %v", s.Share, rest.Share)
	}
	for i := range 15 * 60 * 5 {
		x.scrape(start.Add(time.Duration(i+1) * 200 * time.Millisecond))
	}
	s := p.Status()
	if s.Regime != router.Affinity || s.Switches != [2]uint64{1, 1} {
		t.Errorf("%+v", s)
	}
	c := &p.opts.Curve
	if off := math.Abs(s.Share-c.Share(0)) / (c.High - c.Low) * rungs; off > 0.76 {
		t.Errorf("share %v, %v at rest: %v steps apart", s.Share, c.Share(0), off)
	}
}

// stationary runs arrivals at a constant rate and returns the decisions and the log.
func stationary(t *testing.T, p *Policy, seed uint64, rate float64, topics int, length time.Duration) *pool {
	x := newPool(t, 8, p)
	rng := rand.New(rand.NewPCG(seed, 1))
	next := t0
	for now := t0; now.Sub(t0) < length; now = now.Add(200 * time.Millisecond) {
		for next.Before(now) {
			r := prompt(uint64(rng.IntN(topics)+1), 640*(1+rng.IntN(10)))
			work := time.Duration(rng.ExpFloat64() * float64(5*time.Second))
			x.ask(next, r, 100*time.Millisecond+work/20, 200*time.Millisecond+work)
			next = next.Add(time.Duration(rng.ExpFloat64() / rate * float64(time.Second)))
		}
		x.scrape(now)
	}
	return x
}

// TestStationaryLoadHoldsStill: at most one switch of the regime in 10 minutes of constant load, the
// beginning included, at any rate and however hot the prompts.
func TestStationaryLoadHoldsStill(t *testing.T) {
	for _, rate := range []float64{0.5, 30} {
		for _, topics := range []int{30, 1000} {
			p := policy(t)
			stationary(t, p, uint64(topics), rate, topics, 10*time.Minute)
			s := p.Status()
			if n := s.Switches[0] + s.Switches[1]; n > 1 {
				t.Errorf("%v/s, %d topics: %d switches\n%v", rate, topics, n, lines(p))
			}
		}
	}
}

func lines(p *Policy) (out []string) {
	for _, c := range p.Changes(0, nil) {
		out = append(out, fmt.Sprintf("%v %s %.2f %v", c.At.Sub(t0), c.String(), c.Values, c.Active))
	}
	return out
}

// TestDeterminism: equal calls give equal decisions and equal logs.
func TestDeterminism(t *testing.T) {
	run := func() ([]int, []Change, Status) {
		p := policy(t)
		x := stationary(t, p, 3, 30, 50, 30*time.Second)
		for i := range 200 {
			x.ask(t0.Add(30*time.Second+time.Duration(i)*time.Millisecond), prompt(99, 8192), time.Second, 5*time.Second)
		}
		return x.seq, p.Changes(0, nil), p.Status()
	}
	a, la, sa := run()
	b, lb, sb := run()
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("decisions differ\n%s", diff)
	}
	if diff := cmp.Diff(la, lb); diff != "" || len(la) == 0 {
		t.Errorf("%d changes in the log\n%s", len(la), diff)
	}
	if diff := cmp.Diff(sa, sb); diff != "" {
		t.Error(diff)
	}
}

// TestDifferingIsWhatStaticWeightsWouldDo: the count of picks that differ equals asking the profile
// of the static weights about the very same queries.
func TestDifferingIsWhatStaticWeightsWouldDo(t *testing.T) {
	fixed, err := baseline.Policies().New("weighted", routerParams)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p, err := New(Defaults(routerParams))
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(0)
		for range rapid.IntRange(1, 20).Draw(t, "queries") {
			s := states(4)
			for i := range s {
				s[i].Waiting, s[i].Requests = rapid.Int32Range(0, 9).Draw(t, "waiting"), rapid.Int32Range(0, 50).Draw(t, "requests")
				s[i].KVUsage = float32(rapid.IntRange(0, 100).Draw(t, "kv")) / 100
			}
			q := newQuery(s)
			for i := range q.Hits {
				q.Hits[i] = rapid.Int32Range(0, 100).Draw(t, "hits")
			}
			var d, f router.Decision
			d.Reset()
			f.Reset()
			if p.Route(q, &d) != nil || fixed.Route(q, &f) != nil {
				t.Fatal("no decision")
			}
			// Another draw among equals is no difference.
			if f.Why.Totals[d.Index] < f.Why.Totals[f.Index]-1e-4 {
				want++
			}
		}
		if s := p.Status(); s.Differing != want {
			t.Fatalf("%d differ, want %d", s.Differing, want)
		}
	})
}

// TestExplanationAddsUp: terms are weight x score of the weights in force, and sum up to the totals.
func TestExplanationAddsUp(t *testing.T) {
	p := policy(t)
	s := states(3)
	s[1].KVUsage, s[2].Waiting = 0.5, 3
	q := newQuery(s)
	q.Hits[0] = 100
	var d router.Decision
	d.Reset()
	if err := p.Route(q, &d); err != nil {
		t.Fatal(err)
	}
	if d.Index != 0 || d.Propensity != 1 || d.Why.Reason != router.ByCache || d.Why.Unit != "score" {
		t.Errorf("%+v", d)
	}
	weights := p.Status().Weights
	for i := range s {
		sum := float32(0)
		for j, v := range d.Why.Row(i) {
			sum += v
			if d.Why.Terms[j] != weights[j].Scorer || v < 0 || v > float32(weights[j].Value)+1e-6 {
				t.Errorf("%s: %v of weight %+v", d.Why.Terms[j], v, weights[j])
			}
		}
		if diff := sum - d.Why.Totals[i]; diff > 1e-5 || diff < -1e-5 {
			t.Errorf("row %d sums up to %v, total %v", i, sum, d.Why.Totals[i])
		}
	}
	if w := d.Why.Row(0)[0]; w < 0.999*float32(weights[0].Value) {
		t.Errorf("a full hit is worth %v of %v", w, weights[0].Value)
	}
}

// TestSmallFleets: no endpoint, one, and all filtered out.
func TestSmallFleets(t *testing.T) {
	p := policy(t)
	p.Tick(t0, snapshot(nil))
	p.Tick(t0.Add(time.Second), snapshot(nil))
	one := newQuery(states(1))
	one.Now = t0.Add(2 * time.Second)
	one.Snap.States[0].At = one.Now
	var d router.Decision
	d.Reset()
	if err := p.Route(one, &d); err != nil || d.Index != 0 || d.Propensity != 1 || d.Why.Reason != router.OnlyOne {
		t.Errorf("%v %+v", err, d)
	}
	p.Tick(t0.Add(3*time.Second), one.Snap)
	if s := p.Status(); s.Regime != router.Affinity || s.Differing != 0 || s.Picks != 1 {
		t.Errorf("%+v", s)
	}
	blind := newQuery(states(3))
	for i := range blind.Snap.States {
		blind.Snap.States[i].Load = &fleet.Load{}
	}
	d.Reset()
	if err := p.Route(blind, &d); err != nil {
		t.Errorf("a fleet nobody has scraped yet: %v", err)
	}
}

// composed is a policy made of others.
type composed struct{ parts []router.Policy }

func (composed) Name() string                                    { return "composed" }
func (composed) Route(_ *router.Query, _ *router.Decision) error { return router.ErrSaturated }
func (c composed) Parts() []router.Policy                        { return c.parts }

// TestOf finds the policy wherever it stands.
func TestOf(t *testing.T) {
	fixed, err := baseline.Policies().New("weighted", routerParams)
	if err != nil {
		t.Fatal(err)
	}
	p := policy(t)
	deep := composed{[]router.Policy{fixed, composed{[]router.Policy{p, policy(t)}}}}
	for _, x := range []router.Policy{p, deep} {
		if Of(x) != p {
			t.Errorf("not found in %T", x)
		}
	}
	for _, x := range []router.Policy{fixed, composed{}, nil} {
		if Of(x) != nil {
			t.Errorf("found in %T", x)
		}
	}
}

// TestTimeDoesNotGoBack: ticks that come twice or late change nothing.
func TestTimeDoesNotGoBack(t *testing.T) {
	p := policy(t)
	s := snapshot(states(8))
	p.Tick(t0, s)
	p.Tick(t0.Add(time.Second), s)
	s.States[0].Requests = 500
	before := p.Status()
	p.Tick(t0.Add(time.Second), s)
	p.Tick(t0, s)
	if diff := cmp.Diff(before, p.Status()); diff != "" {
		t.Error(diff)
	}
	p.Tick(t0.Add(2*time.Second), s)
	if p.Status().Detectors[0].Value == 0 {
		t.Error("the next tick saw nothing")
	}
}

// TestRouteDoesNotAllocate, neither when it only scores nor when it runs the detectors and moves
// the weights.
func TestRouteDoesNotAllocate(t *testing.T) {
	p := policy(t)
	q := newQuery(states(100))
	var d router.Decision
	flight, now := int32(0), t0
	rung := map[int]bool{}
	route := func() {
		now = now.Add(20 * time.Millisecond)
		flight = (flight + 7) % 500
		q.Now = now
		q.Snap.States[3].Requests = flight
		d.Reset()
		if p.Route(q, &d) != nil {
			t.Fatal("no decision")
		}
		if flight < 7 {
			p.Tick(now.Add(time.Millisecond), q.Snap)
		}
	}
	for i := range q.Snap.States {
		q.Snap.States[i].At = t0.Add(time.Minute)
	}
	for range 200 {
		route()
		rung[p.now.Load().at] = true
	}
	if len(rung) < 2 {
		t.Errorf("the weights stood on %d rungs: the test does not test", len(rung))
	}
	if n := testing.AllocsPerRun(1000, route); n != 0 {
		t.Errorf("%v allocations per decision", n)
	}
}

// TestTickBesideRoute is for the race detector: ticks, readers and decisions at once.
func TestTickBesideRoute(t *testing.T) {
	p := policy(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		q := newQuery(states(8))
		var d router.Decision
		for i := range 2000 {
			q.Now = t0.Add(time.Duration(i) * 5 * time.Millisecond)
			q.Snap.States[i%8].Requests = int32(i % 300)
			for j := range q.Snap.States {
				q.Snap.States[j].Load = &fleet.Load{At: q.Now, Known: allKnown}
			}
			d.Reset()
			if err := p.Route(q, &d); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		s := snapshot(states(8))
		for i := range 2000 {
			s.States[0].Requests = int32(i % 400)
			p.Tick(t0.Add(time.Duration(i)*5*time.Millisecond), s)
		}
	})
	wg.Go(func() {
		last := uint64(0)
		for range 500 {
			sum := 0.0
			for _, w := range p.Status().Weights {
				sum += w.Value
			}
			if sum < 1-1e-9 || sum > 1+1e-9 {
				t.Errorf("half a vector of weights: sum %v", sum)
			}
			for _, c := range p.Changes(last, nil) {
				if c.Seq <= last {
					t.Errorf("change %d after %d", c.Seq, last)
				}
				last = c.Seq
			}
		}
	})
	wg.Wait()
	if s := p.Status(); s.Picks == 0 || s.Changes == 0 {
		t.Errorf("nothing happened: %+v", s)
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, n := range []int{8, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := policy(b)
			q := newQuery(states(n))
			var d router.Decision
			b.ReportAllocs()
			for b.Loop() {
				d.Reset()
				if err := p.Route(q, &d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTick(b *testing.B) {
	p := policy(b)
	s := snapshot(states(100))
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(200 * time.Millisecond)
		p.Tick(now, s)
	}
}
