package router

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// pool returns a fleet of n endpoints e0, e1, … at 10.0.0.1:8000, 10.0.0.2:8000, ….
func pool(t testing.TB, n int, set func(i int, e *fleet.Endpoint)) *fleet.Fleet {
	t.Helper()
	f := &fleet.Fleet{}
	if _, err := f.Sync(t0, endpoints(n, set)); err != nil {
		t.Fatal(err)
	}
	return f
}

func endpoints(n int, set func(i int, e *fleet.Endpoint)) []*fleet.Endpoint {
	var list []*fleet.Endpoint
	for i := range n {
		e := &fleet.Endpoint{Name: fmt.Sprintf("e%d", i), Addr: addr(i), Model: "demo", TP: 1}
		if set != nil {
			set(i, e)
		}
		list = append(list, e)
	}
	return list
}

func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i + 1)}), 8000)
}

func inflight(f *fleet.Fleet) map[string]int32 {
	var s fleet.Snapshot
	f.Snapshot(t0, &s)
	m := map[string]int32{}
	for i := range s.States {
		m[s.States[i].Name] = s.States[i].Requests
	}
	return m
}

// rule is a policy made of a function.
type rule func(q *Query, d *Decision) error

func (rule) Name() string                        { return "rule" }
func (r rule) Route(q *Query, d *Decision) error { return r(q, d) }

// pickAt picks index i with certainty.
func pickAt(i int) rule {
	return func(_ *Query, d *Decision) error { d.Index, d.Propensity = i, 1; return nil }
}

// fewest is least-request as a policy, without an explanation.
var fewest = rule(func(q *Query, d *Decision) error { q.fewest(d); return nil })

// log records what observers and recorders see.
type log struct {
	mu   sync.Mutex
	ids  []ID
	obs  []features.Observation
	seen func(q *Query, d *Decision)
}

func (l *log) Record(id ID, q *Query, d *Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
	if l.seen != nil {
		l.seen(q, d)
	}
}

func (l *log) Observe(o *features.Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.obs = append(l.obs, *o)
}

// TestFailingPolicyFallsBack: a panic, a pick outside the candidates and a propensity that is none
// all end in the plain rule, are counted, and say whose fault it was.
func TestFailingPolicyFallsBack(t *testing.T) {
	cases := []struct {
		name    string
		policy  rule
		failure string
	}{
		{"panic", func(*Query, *Decision) error { panic("out of ideas") }, "panic"},
		{"panic after a pick", func(_ *Query, d *Decision) error {
			d.Index, d.Propensity = 0, 1
			panic(errors.New("too late"))
		}, "panic"},
		{"nothing picked", func(*Query, *Decision) error { return nil }, "invalid"},
		{"index below", pickAt(-7), "invalid"},
		{"index above", pickAt(99), "invalid"},
		{"no candidate", pickAt(2), "invalid"}, // e2 drains
		{"propensity NaN", func(_ *Query, d *Decision) error { d.Index, d.Propensity = 0, math.NaN(); return nil }, "nan"},
		{"propensity 0", func(_ *Query, d *Decision) error { d.Index, d.Propensity = 0, 0; return nil }, "nan"},
		{"propensity above 1", func(_ *Query, d *Decision) error { d.Index, d.Propensity = 0, 1.01; return nil }, "nan"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := pool(t, 3, func(i int, e *fleet.Endpoint) { e.Drain = i == 2 })
			r := New(Options{Fleet: f, Policy: c.policy})
			var busy Flight // e0 and e1 are equal, so that the fallback must go to the other one
			r.SetPolicy(pickAt(0))
			if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, &busy); err != nil {
				t.Fatal(err)
			}
			r.SetPolicy(c.policy)
			var fl Flight
			if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, &fl); err != nil {
				t.Fatal(err)
			}
			d := &fl.Decision
			if fl.Picked.Name != "e1" || d.Policy != "fallback" || d.Failed != "rule" || d.Failure != c.failure || d.Why.Reason != ByFallback {
				t.Errorf("picked %s by %s, failed %q %q, reason %s", fl.Picked.Name, d.Policy, d.Failed, d.Failure, d.Why.Reason)
			}
			if d.Propensity != 1 || r.Fallbacks.Load() != 1 {
				t.Errorf("propensity %v, %d fallbacks", d.Propensity, r.Fallbacks.Load())
			}
			if wantText := c.failure == "panic"; (r.LastPanic() != "") != wantText {
				t.Errorf("last panic %q", r.LastPanic())
			}
			if d.Why.Filtered[2] != "draining" {
				t.Errorf("left out: %q", d.Why.Filtered)
			}
		})
	}
}

// TestFallbackSpreadsTies: the plain rule does not favour the first endpoint, and says so.
func TestFallbackSpreadsTies(t *testing.T) {
	r := New(Options{Fleet: pool(t, 4, nil), Policy: pickAt(-1)})
	count := map[string]int{}
	for range 400 {
		var fl Flight
		if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, &fl); err != nil {
			t.Fatal(err)
		}
		if fl.Decision.Propensity != 0.25 {
			t.Fatalf("propensity %v", fl.Decision.Propensity)
		}
		count[fl.Picked.Name]++
		fl.Finish(t0, &Outcome{Cause: fleet.Complete})
	}
	for name, n := range count {
		if n < 60 || n > 140 {
			t.Errorf("%s got %d of 400", name, n)
		}
	}
}

// TestPolicyErrorRefuses: an error of the policy reaches the caller and reserves nothing.
func TestPolicyErrorRefuses(t *testing.T) {
	f := pool(t, 2, nil)
	r := New(Options{Fleet: f, Policy: rule(func(*Query, *Decision) error { return ErrSaturated })})
	var fl Flight
	if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, &fl); !errors.Is(err, ErrSaturated) {
		t.Fatalf("error %v", err)
	}
	if fl.Open() || r.Fallbacks.Load() != 0 || inflight(f)["e0"]+inflight(f)["e1"] != 0 {
		t.Error("something was reserved")
	}
}

// TestBadFallbackListIsCleaned: gateways get only candidates, each once and not the picked one.
func TestBadFallbackListIsCleaned(t *testing.T) {
	f := pool(t, 3, func(i int, e *fleet.Endpoint) { e.Drain = i == 2 })
	r := New(Options{Fleet: f, Policy: rule(func(_ *Query, d *Decision) error {
		d.Index, d.Propensity = 0, 1
		d.Fallback = append(d.Fallback, -1, 2, 0, 1, 3)
		return nil
	})})
	var fl Flight
	if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, &fl); err != nil {
		t.Fatal(err)
	}
	if len(fl.Fallback) != 1 || fl.Fallback[0].Name != "e1" {
		t.Errorf("fallback %v", fl.Decision.Fallback)
	}
}

func TestCandidates(t *testing.T) {
	set := func(i int, e *fleet.Endpoint) {
		switch i {
		case 0:
			e.Drain = true
		case 1:
			e.Role = fleet.RolePrefill
		case 2:
			e.Model, e.Adapters = "demo", []string{"tuned", "both"}
		case 5:
			e.Model = "both"
		case 3:
			e.Model = "other"
		case 4:
			e.Model = "" // anything
		}
	}
	only := func(list ...netip.AddrPort) *Ask { return &Ask{Subset: list, Narrow: true} }
	cases := []struct {
		name    string
		ask     *Ask
		model   string
		strict  bool
		err     error
		want    []string // why each of the six is out
		adapter string
	}{
		{"base model", &Ask{}, "demo", false, nil, []string{"draining", "prefill only", "", "model", "", "model"}, ""},
		{"another base model", &Ask{}, "other", true, nil, []string{"draining", "prefill only", "model", "", "", "model"}, ""},
		{"configured adapter", &Ask{}, "tuned", false, nil, []string{"draining", "prefill only", "", "model", "", "model"}, "tuned"},
		{"adapter on the page", &Ask{}, "seen", true, nil, []string{"draining", "prefill only", "model", "", "", "model"}, "seen"},
		{"base model here, adapter there", &Ask{}, "both", true, nil, []string{"draining", "prefill only", "", "model", "", ""}, ""},
		{"no model", &Ask{}, "", true, nil, []string{"draining", "prefill only", "", "", "", ""}, ""},
		{"subset by address and port", only(addr(2)), "demo", false, nil, []string{"draining", "prefill only", "", "subset", "subset", "subset"}, ""},
		{"subset by address", only(netip.AddrPortFrom(addr(4).Addr(), 0)), "demo", false, nil, []string{"draining", "prefill only", "subset", "subset", "", "subset"}, ""},
		{"subset of another port", only(netip.AddrPortFrom(addr(2).Addr(), 9)), "demo", false, ErrNoEndpoint, nil, ""},
		{"empty subset", only(), "demo", false, ErrNoEndpoint, nil, ""},
		{"subset of the draining one", only(addr(0)), "demo", false, ErrNoEndpoint, nil, ""},
		{"unknown model in a subset, strict", only(addr(2), addr(3)), "nobody", true, ErrUnknownModel, nil, ""},
		{"unknown model in a subset", only(addr(2), addr(3)), "nobody", false, nil, []string{"draining", "prefill only", "", "", "subset", "subset"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := pool(t, 6, set)
			var snap fleet.Snapshot
			f.Snapshot(t0, &snap)
			s := snap.States[3]
			f.SetLoad(fleet.Ref{Slot: s.Slot, Instance: s.Instance}, &fleet.Load{At: t0, Known: fleet.KnowLoRA, RunningLoRA: []string{"seen"}})
			l := &log{}
			var out []string
			var keep []bool
			l.seen = func(q *Query, d *Decision) {
				out, keep = slices.Clone(d.Why.Filtered), slices.Clone(q.Keep)
			}
			r := New(Options{Fleet: f, Policy: fewest, Recorder: l, Strict: c.strict})
			req := prompt(64)
			req.Model = c.model
			c.ask.Now, c.ask.Req = t0, req
			var fl Flight
			err := r.Route(c.ask, &fl)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil {
				return
			}
			if !slices.Equal(out, c.want) {
				t.Errorf("left out by %q, want %q", out, c.want)
			}
			for i, why := range out {
				if keep[i] != (why == "") {
					t.Errorf("endpoint %d: candidate %t, left out by %q", i, keep[i], why)
				}
			}
			if req.Adapter != c.adapter {
				t.Errorf("adapter %q, want %q", req.Adapter, c.adapter)
			}
		})
	}
}

func TestSetStrict(t *testing.T) {
	r := New(Options{Fleet: pool(t, 2, func(_ int, e *fleet.Endpoint) { e.Model = "demo" }), Policy: fewest})
	for _, strict := range []bool{true, false} {
		r.SetStrict(strict)
		req := prompt(64)
		req.Model = "nobody"
		var fl Flight
		if err := r.Route(&Ask{Now: t0, Req: req}, &fl); (err != nil) != strict || strict && !errors.Is(err, ErrUnknownModel) {
			t.Errorf("strict %t: %v", strict, err)
		}
	}
}

// TestRewrittenModel: endpoints must serve the model that the engine is asked for.
func TestRewrittenModel(t *testing.T) {
	r := New(Options{Fleet: pool(t, 2, func(i int, e *fleet.Endpoint) { e.Model = []string{"alias", "base"}[i] }), Policy: fewest, Strict: true})
	req := prompt(64)
	req.Model, req.Rewrite = "alias", "base"
	var fl Flight
	if err := r.Route(&Ask{Now: t0, Req: req}, &fl); err != nil || fl.Picked.Model != "base" {
		t.Errorf("picked %v, %v", fl.Picked, err)
	}
}

func TestEmptyFleet(t *testing.T) {
	r := New(Options{Fleet: &fleet.Fleet{}, Policy: fewest})
	var fl Flight
	if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, &fl); !errors.Is(err, ErrNoEndpoint) {
		t.Fatalf("error %v", err)
	}
}

// TestRatiosEstimateThePrompt: prompts of text are as long as the model's ratio says, and what the
// engine reports is learned.
func TestRatiosEstimateThePrompt(t *testing.T) {
	var ratios request.Ratios
	r := New(Options{Fleet: pool(t, 1, nil), Policy: fewest, Ratios: &ratios})
	for range 2000 {
		req := &request.Request{Model: "demo", PromptBytes: 3000, BlockSize: 256, Choices: 1}
		var fl Flight
		if err := r.Route(&Ask{Now: t0, Req: req}, &fl); err != nil {
			t.Fatal(err)
		}
		fl.Finish(t0, &Outcome{Cause: fleet.Complete, Usage: Usage{Prompt: 1000, Cached: features.Unknown, Output: features.Unknown}})
	}
	if got := ratios.Estimate("demo", 3000); got < 995 || got > 1005 {
		t.Errorf("3,000 bytes are %d tokens, 1,000 were reported", got)
	}
}

// TestIDsAreUnique also across routers of different seeds.
func TestIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(4) {
		l := &log{}
		r := New(Options{Fleet: pool(t, 1, nil), Policy: fewest, Recorder: l, Seed: seed})
		for range 50 {
			if err := r.Route(&Ask{Now: t0, Req: prompt(64)}, &Flight{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range l.ids {
			s := id.String()
			if seen[s] {
				t.Fatalf("%s twice", s)
			}
			seen[s] = true
			if back, ok := ParseID(s); !ok || back != id {
				t.Fatalf("%s parses as %v, %t", s, back, ok)
			}
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "d-", "d-1-1", "d-zik0zj-3w5e11264sgsf", "d-zik0zk-1", "d-1-01", "d--1", "d-1", "x-1-1", "d-A-1", "d-1-1-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, ok := ParseID(s); ok && id.String() != s {
			t.Fatalf("%q parses, but prints as %s", s, id)
		}
	})
}

// TestConcurrentUse routes, finishes, moves and reconfigures all at once; in the end nothing is in
// flight and nobody is waited for.
func TestConcurrentUse(t *testing.T) {
	f := pool(t, 8, nil)
	p := profile(t, ProfileSpec{Scorers: published, Fallbacks: 2})
	l := &log{}
	r := New(Options{Fleet: f, Policy: p, Observer: Observers{l}, Recorder: Recorders{l}})
	var work, churn sync.WaitGroup
	stop := make(chan struct{})
	churn.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := f.Sync(t0, endpoints(5+n%4, nil)); err != nil {
				t.Error(err)
			}
			if n%2 == 0 {
				r.SetPolicy(fewest)
			} else {
				r.SetPolicy(profile(t, ProfileSpec{Scorers: published}))
			}
		}
	})
	const workers, each = 8, 300
	for w := range workers {
		work.Go(func() {
			for n := range each {
				now := t0.Add(time.Duration(n) * time.Millisecond)
				var fl Flight
				if err := r.Route(&Ask{Now: now, Req: prompt(64 + n)}, &fl); err != nil {
					t.Error(err)
					return
				}
				fl.Served(addr((w + n) % 8))
				fl.Tokens(now, 1)
				fl.Tokens(now, 3)
				fl.Finish(now, &Outcome{Cause: fleet.Complete, Usage: Usage{Cached: features.Unknown, Output: features.Unknown}})
				fl.Finish(now, &Outcome{Cause: fleet.ClientGone})
			}
		})
	}
	work.Wait()
	close(stop)
	churn.Wait()
	if len(l.obs) != workers*each || len(l.ids) != workers*each {
		t.Errorf("%d observations and %d decisions of %d requests", len(l.obs), len(l.ids), workers*each)
	}
	for name, n := range inflight(f) {
		if n != 0 {
			t.Errorf("%s has %d in flight", name, n)
		}
	}
	if left := f.Leaving(nil); len(left) != 0 {
		t.Errorf("%d instances still leaving", len(left))
	}
}

// TestRouteDoesNotAllocate: snapshot, candidates, decision, reservation, all in reused memory.
func TestRouteDoesNotAllocate(t *testing.T) {
	r := New(Options{Fleet: pool(t, 100, nil), Policy: profile(t, ProfileSpec{Scorers: published, Fallbacks: 2})})
	ask, fl := &Ask{Now: t0, Req: prompt(6400)}, &Flight{}
	run := func() {
		fl.Reset()
		if err := r.Route(ask, fl); err != nil {
			t.Fatal(err)
		}
		fl.ticket.Done(t0)
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations per decision", n)
	}
}
