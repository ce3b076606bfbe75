package experiment

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// vandal is a shadow that breaks what it can reach and panics every third time.
type vandal struct{ n int }

func (*vandal) Name() string { return "vandal" }

func (v *vandal) Route(q *router.Query, d *router.Decision) error {
	for i := range q.Keep {
		q.Keep[i], q.Hits[i], q.Out[i] = false, 99, "vandal"
	}
	q.Rand.Uint64()
	d.Index, d.Propensity = 0, 1
	if v.n++; v.n%3 == 0 {
		panic("vandal")
	}
	return nil
}

// pricing is a policy whose costs are milliseconds: endpoint i costs 10 i + 1.
type pricing struct{ at int }

var pricingTerms = []string{"queue"}

func (pricing) Name() string { return "pricing" }

func (p pricing) Route(q *router.Query, d *router.Decision) error {
	v := d.Why.Size("ms", pricingTerms, len(q.Keep))
	for i := range q.Keep {
		v[i] = float32(10*i + 1)
		d.Why.Totals[i] = v[i]
	}
	d.Index, d.Propensity = p.at, 1
	return nil
}

// TestShadowChangesNothing: with and without shadows the same requests get the same decisions, down
// to draws, ledger and index.
func TestShadowChangesNothing(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"p2c", "llmd-weighted", "random", "smg-cache-aware", "round-robin"}).Draw(t, "policy")
		seed := rapid.Uint64().Draw(t, "seed")
		run := func(shadowed bool) (log []string) {
			f := pool(tt, 4)
			p := baselinePolicy(tt, name, 5)
			if shadowed {
				p = NewShadow(p, []router.Policy{&vandal{}, baselinePolicy(tt, "p2c", 5), baselinePolicy(tt, "llmd-weighted", 5)}, 1, seed)
			}
			index := prefix.NewIndex(prefix.Options{})
			r := router.New(router.Options{Fleet: f, Policy: p, Prefixes: index, Seed: seed})
			flights := make([]router.Flight, 60)
			for i := range flights {
				now := t0.Add(time.Duration(i) * 100 * time.Millisecond)
				req := &request.Request{Model: "demo", Choices: 1, PromptBytes: 1024, PromptTokens: 256, ExactTokens: true, BlockSize: 256}
				for b := range 4 {
					req.Blocks = append(req.Blocks, mix(uint64(i%7*10+b))|1)
				}
				fl := &flights[i]
				if err := r.Route(&router.Ask{Now: now, Req: req}, fl); err != nil {
					t.Fatal(err)
				}
				d := &fl.Decision
				log = append(log, fmt.Sprintf("%s %s %v %v %v", fl.Picked.Name, d.Policy, d.Propensity, d.Why.Totals, d.Why.Filtered))
				if i > 5 {
					flights[i-5].Tokens(now, 3)
					flights[i-5].Finish(now, &router.Outcome{Cause: fleet.Complete, Usage: router.Usage{Prompt: -1, Cached: -1, Output: -1}})
				}
			}
			var s fleet.Snapshot
			f.Snapshot(t0, &s)
			for i := range s.States {
				log = append(log, fmt.Sprintf("%s %+v", s.States[i].Name, s.States[i].Inflight))
			}
			return log
		}
		if diff := cmp.Diff(run(false), run(true)); diff != "" {
			t.Fatalf("without and with shadows:\n%s", diff)
		}
	})
}

// TestShadowCounts: agreement, gain by the shadow's own forecast, panics and useless answers.
func TestShadowCounts(t *testing.T) {
	s := NewShadow(fixed{"rule", 2}, []router.Policy{pricing{1}, fixed{"same", 2}, &vandal{}, fixed{"lost", 99}}, 1, 1)
	for range 300 {
		if d := ask(t, s, t0, ""); d.Index != 2 || d.Policy != "" || d.Arm != "" {
			t.Fatalf("%+v", d)
		}
	}
	want := []ShadowStatus{
		{Policy: "pricing", Decisions: 300, Gains: 300, Gain: 3000},
		{Policy: "same", Decisions: 300, Agreed: 300},
		{Policy: "vandal", Decisions: 200, Panics: 100},
		{Policy: "lost", Failed: 300},
	}
	if diff := cmp.Diff(want, s.Report()); diff != "" {
		t.Error(diff)
	}
	e := ab(t, Options{}, 0.5, 0.5)
	both := NewShadow(e, nil, 0, 0)
	if x, sh := Of(both); x != e || sh != both {
		t.Error("the parts are not found")
	}
	if x, sh := Of(fixed{}); x != nil || sh != nil {
		t.Error("parts of nothing")
	}
}

// TestShadowIsSampled: one decision in 16, without a rhythm that requests could share.
func TestShadowIsSampled(t *testing.T) {
	s := NewShadow(fixed{"rule", 2}, []router.Policy{fixed{"same", 2}}, 0, 4)
	at := []int{}
	for i := range 16000 {
		before := s.shadows[0].decisions.Load()
		ask(t, s, t0, "")
		if s.shadows[0].decisions.Load() > before {
			at = append(at, i)
		}
	}
	gaps := map[int]bool{}
	for i := 1; i < len(at); i++ {
		gaps[at[i]-at[i-1]] = true
	}
	if len(at) < 900 || len(at) > 1100 || len(gaps) < 30 {
		t.Errorf("%d decisions at %d different distances", len(at), len(gaps))
	}
}

// BenchmarkShadow tells what a shadow adds to a decision among 100 endpoints, of its own kind, at the
// default share. Against it stand at least 100 us that the service spends on a request in all.
func BenchmarkShadow(b *testing.B) {
	for _, n := range []int{0, 1} {
		b.Run(fmt.Sprintf("%d shadows", n), func(b *testing.B) {
			p := baselinePolicy(b, "llmd-weighted", 1)
			if n > 0 {
				p = NewShadow(p, []router.Policy{baselinePolicy(b, "llmd-weighted", 2)}, 0, 1)
			}
			r := router.New(router.Options{Fleet: pool(b, 100), Policy: p})
			req := &request.Request{Model: "demo", Choices: 1, PromptTokens: 100, ExactTokens: true}
			var f router.Flight
			for b.Loop() {
				f.Reset()
				if err := r.Route(&router.Ask{Now: t0, Req: req}, &f); err != nil {
					b.Fatal(err)
				}
				f.Finish(t0, &router.Outcome{Cause: fleet.ClientGone, Usage: router.Usage{Prompt: -1, Cached: -1, Output: -1}})
			}
		})
	}
}
