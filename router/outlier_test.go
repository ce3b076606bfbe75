package router

import (
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router/outlier"
)

// TestProbesAreOutsideOfPolicies: an endpoint that fails is left out and says why; the request that
// tries it out has the policy's own pick as its fallback and belongs to no policy and no arm.
func TestProbesAreOutsideOfPolicies(t *testing.T) {
	f := pool(t, 4, nil)
	l := &log{}
	rec := 0
	l.seen = func(q *Query, d *Decision) {
		if !q.Keep[d.Index] || q.Out[d.Index] != "" {
			t.Errorf("decision %d is no candidate: %v, %q", d.Index, q.Keep, q.Out)
		}
		rec++
	}
	policy := rule(func(q *Query, d *Decision) error {
		q.fewest(d)
		d.Arm = "treatment"
		if q.Keep[0] { // it looks idle
			d.Index, d.Propensity = 0, 1
		}
		return nil
	})
	r := New(Options{Fleet: f, Policy: policy, Recorder: l, Observer: l, Outliers: &outlier.Detector{}})
	now := t0
	send := func() *Flight {
		fl := &Flight{}
		if err := r.Route(&Ask{Now: now, Req: &request.Request{Model: "demo", Stream: true, Choices: 1}}, fl); err != nil {
			t.Fatal(err)
		}
		return fl
	}
	fail := func(fl *Flight) {
		fl.Status(503)
		fl.Finish(now, &Outcome{Cause: fleet.UpstreamError, Usage: Usage{-1, -1, -1}})
	}
	for range 3 {
		fl := send()
		if fl.Picked.Name != "e0" || fl.Decision.Arm != "treatment" {
			t.Fatalf("%+v", fl.Decision)
		}
		fail(fl)
	}
	done := func(fl *Flight) {
		fl.Tokens(now, 1)
		fl.Finish(now, &Outcome{Cause: fleet.Complete, Usage: Usage{-1, -1, -1}})
	}
	for range 10 {
		fl := send()
		if fl.Picked.Name == "e0" || fl.Decision.Why.Filtered[0] != outlier.LeftOut {
			t.Fatalf("%s, left out %q", fl.Picked.Name, fl.Decision.Why.Filtered)
		}
		done(fl)
	}
	for _, ok := range []bool{false, true} {
		now = now.Add(10 * time.Second)
		fl := send()
		d := &fl.Decision
		if fl.Picked.Name != "e0" || d.Policy != "probe" || d.Arm != "" || d.Propensity != 1 || d.Why.Reason != ByExplore || d.Why.Filtered[0] != "" {
			t.Fatalf("%+v", d)
		}
		if len(fl.Fallback) == 0 || fl.Fallback[0].Name == "e0" {
			t.Errorf("fallbacks %v", fl.Fallback)
		}
		again := send()
		if again.Picked.Name == "e0" {
			t.Error("a second request while the probe is open")
		}
		done(again)
		if !ok {
			fail(fl)
			continue
		}
		fl.Tokens(now, 1)
	}
	back := 0
	for range 100 {
		now = now.Add(time.Second)
		fl := send()
		if fl.Picked.Name == "e0" {
			back++
		}
		done(fl)
	}
	if back < 85 || rec != len(l.ids) {
		t.Errorf("%d of 100 requests after the recovery", back)
	}
	for _, o := range l.obs {
		if o.Policy == "probe" && o.Arm != "" {
			t.Errorf("%+v", o)
		}
	}
}

// TestGatewayPassesOver: where the gateway serves from a fallback, the endpoint it skipped has failed.
func TestGatewayPassesOver(t *testing.T) {
	f := pool(t, 3, nil)
	d := &outlier.Detector{}
	r := New(Options{Fleet: f, Policy: rule(func(q *Query, d *Decision) error {
		for i, k := range q.Keep {
			if k {
				d.Index, d.Propensity = i, 1
				return nil
			}
		}
		return nil
	}), Outliers: d})
	for i := range 6 {
		var fl Flight
		if err := r.Route(&Ask{Now: t0, Req: &request.Request{Model: "demo", Stream: true, Choices: 1}}, &fl); err != nil {
			t.Fatal(err)
		}
		if want := i < 3; (fl.Picked.Name == "e0") != want {
			t.Fatalf("request %d went to %s", i, fl.Picked.Name)
		}
		fl.Served(addr(2))
		fl.Tokens(t0, 1)
		fl.Finish(t0, &Outcome{Cause: fleet.Complete, Usage: Usage{-1, -1, -1}})
	}
	if s := d.Report(nil); s[2].State != outlier.Working {
		t.Errorf("%+v", s)
	}
}

// TestDescribedAnew: an endpoint that discovery has described again before the answer began, with the
// same words or others, is the one that was picked; nobody was passed over.
func TestDescribedAnew(t *testing.T) {
	for _, adapters := range [][]string{nil, {"sql"}} {
		f := pool(t, 2, nil)
		d := &outlier.Detector{}
		x := index{}
		r := New(Options{Fleet: f, Policy: pickAt(0), Prefixes: x, Outliers: d})
		for range 4 {
			req := prompt(640)
			req.Stream = true
			var fl Flight
			if err := r.Route(&Ask{Now: t0, Req: req}, &fl); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Sync(t0, endpoints(2, func(_ int, e *fleet.Endpoint) { e.Adapters = adapters })); err != nil {
				t.Fatal(err)
			}
			if !fl.Served(addr(0)) {
				t.Fatal("not accepted")
			}
			fl.Tokens(t0, 1)
			fl.Finish(t0, &Outcome{Cause: fleet.Complete, Usage: silent})
		}
		if s := d.Report(nil)[0]; s.State != outlier.Working {
			t.Errorf("adapters %v: %+v", adapters, s)
		}
	}
}
