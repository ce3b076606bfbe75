package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
)

// floor is what an engine takes at least, in seconds, whatever else is in its batches. With the step
// time of package engine,
//
//	step + seq*S + G(T) + LM(S) + [prefill] fix + lin*q + quad*Q | [no prefill] fix' + decSeq*n + kv*K,
//
// for S requests, T = q+n tokens and K tokens of context, all terms of which are at least 0:
//
// Shared work. G(T) >= rate*T where rate is the least G(T)/T up to the largest batch, so every step takes
// at least the sum, over its requests, of rate+lin per prefill token, quad per token and token before
// it, and rate+decSeq+kv*context per decoded token. Summed over steps: the time of any set of steps is
// at least the sum of what each request's tokens in them cost.
//
// Alone. A prompt of u uncached tokens takes at least u/budget steps, each of at least the constant
// terms and the least G; a decoded token takes a step of its own.
type floor struct {
	frontend float64
	budget   float64 // tokens of a batch
	rate     float64 // of G, per token
	least    float64 // of G
	prefill  float64 // constant terms of a step with a prefill of ours
	decode   float64 // of a step that decodes a token of ours
	lin      float64
	quad     float64
	seq      float64
	kv       float64
}

// floors are those of an engine at its fastest during the run, under each profile that it has; the
// bound takes the best of them.
func floors(cfg *cluster.Config, node int) ([]floor, error) {
	e, err := engine.New(cfg.Nodes[node].Engine)
	if err != nil {
		return nil, err
	}
	c := e.Config()
	profiles, fastest := []engine.Profile{c.Profile}, 1.0
	for i := range cfg.Events {
		ev := &cfg.Events[i]
		if !slices.Contains(ev.Nodes, node) {
			continue
		}
		if ev.Kind == cluster.Slow {
			fastest = min(fastest, ev.Factor)
		}
		if ev.Kind == cluster.Upgrade {
			if ev.Profile.Name != "" {
				profiles = append(profiles, ev.Profile)
			}
			c.MaxBatched = max(c.MaxBatched, ev.MaxBatched) // batches over a lowered limit run on
		}
	}
	c.Slowdown = max(c.Slowdown*fastest, 0.01)
	all := make([]floor, len(profiles))
	for i, p := range profiles {
		c.Profile = p
		all[i] = floorOf(&c)
	}
	return all, nil
}

// floorOf is that of a complete configuration.
func floorOf(c *engine.Config) floor {
	const us = 1e-6
	k, f := &c.Coefs, c.Slowdown*us
	g, budget := func(i int) float64 { return k.G[i] * c.Kernel * f }, float64(c.MaxBatched)
	least, rate := g(0), g(0)/min(max(k.Knots[0], 1), budget)
	for i := 1; i < len(k.Knots) && k.Knots[i-1] < budget; i++ {
		at, v := k.Knots[i], g(i)
		if last := i == len(k.Knots)-1; at > budget || last && at < budget { // on the line, at the largest batch
			v = g(i-1) + (v-g(i-1))*(budget-k.Knots[i-1])/(at-k.Knots[i-1])
			least, rate = min(least, g(i)), min(rate, g(i)/at)
			at = budget
		}
		least, rate = min(least, v), min(rate, v/at)
	}
	head := min(k.LM1, k.LM64, k.LM256) * f
	step := c.Profile.Step*f + c.Profile.Seq*f + head
	return floor{
		frontend: c.Profile.Frontend.Seconds(), budget: budget, rate: max(rate, 0), least: max(least, 0),
		prefill: step + k.PrefillFix*f, decode: step + min(k.PrefillFix, k.DecodeFix)*f + k.DecodeSeq*f,
		lin: k.PrefillLin * f, quad: k.PrefillQuad * f, seq: k.DecodeSeq * f, kv: math.Floor(k.DecodeKV*f*1e12) / 1e12, // whole picoseconds
	}
}

// work is what a request costs an engine at least beside others: its prefill, and the tokens after the
// first.
func (f *floor) work(r *demand) (prefill, decode float64) {
	u, p, n := float64(r.uncached), float64(r.prompt), float64(r.output-1)
	prefill = (f.rate+f.lin)*u + f.quad*u*(p-u/2)
	return prefill, n*(f.rate+f.seq) + f.kv*r.contexts()
}

// first is the least time to the first token.
func (f *floor) first(r *demand) float64 {
	u, p := float64(r.uncached), float64(r.prompt)
	steps := math.Ceil(u / f.budget)
	return f.frontend + steps*f.prefill + max(f.rate*u, steps*f.least) + f.lin*u + f.quad*u*(p-u/2)
}

// gap is the least mean time between tokens after the first.
func (f *floor) gap(r *demand) float64 {
	if r.output < 2 {
		return 0
	}
	return f.decode + f.least + f.kv*r.contexts()/float64(r.output-1)
}

// able reports whether the request can keep its SLOs on an engine that serves nothing else.
func (f *floor) able(r *demand) bool {
	first, gap := f.first(r), f.gap(r)
	return within(first, r.slo.TTFT) && within(gap, r.slo.ITL) && within(first+gap*float64(r.output-1), r.slo.E2E)
}

// within allows for the rounding of the engine's clock.
func within(seconds float64, slo time.Duration) bool {
	return slo == 0 || seconds*(1-slack) <= slo.Seconds()
}

// slack is the share by which floors are lowered for rounding.
const slack = 1e-6
