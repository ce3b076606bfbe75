package compare

import (
	"fmt"
	"slices"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/outlier"
)

// Arena is where policies are compared.
type Arena struct {
	Scenario *workload.Scenario
	Table    engine.Table
	Trace    string            // file that the scenario replays, where it needs one
	Policies router.Registry   // what can be played
	Learner  predictor.Options // of the predictor that every run has

	Scrape, ScrapeAge time.Duration // of metrics pages; 0: 200 ms, fresh
}

// Result is what one run was, from the first request after the warm-up on.
type Result struct {
	Policy string
	Load   float64
	Seed   uint64

	Requests   int
	Attainment float64          // share that kept every SLO it carried
	Classes    map[string]Class // by SLO class
	Goodput    float64          // of these, per second
	TTFT       Times            // of answered requests
	ITL, E2E   float64          // means, seconds
	Tokens     float64          // generated per second
	Hit        float64          // share of prompt tokens served from caches
	LoadCV     float64          // coefficient of variation of requests per engine
	Answered   float64          // share that were answered to the end
	Share      []float64        // of the requests, by engine
}

// Class is what one SLO class got.
type Class struct {
	Requests   int
	Attainment float64
}

// Times are a mean and quantiles, in seconds.
type Times struct{ Mean, P50, P90, P99 float64 }

// Play runs one policy.
func (a *Arena) Play(policy string, load float64, seed uint64) (*Result, error) {
	cfg, err := a.Scenario.Cluster(a.Table)
	if err != nil {
		return nil, err
	}
	src, err := a.Scenario.Source(workload.Options{Seed: seed, Load: load, Trace: a.Trace})
	if err != nil {
		return nil, err
	}
	cfg.Seed, cfg.Scrape, cfg.ScrapeAge = seed, a.Scrape, a.ScrapeAge
	if cfg.Policy, err = a.Policies.New(policy, router.Params{Seed: seed, PeakPrefill: a.peak(&cfg)}); err != nil {
		return nil, err
	}
	cfg.Learner = predictor.NewLearner(a.Learner)
	cfg.Outliers = new(outlier.Detector)
	t := tally{warmup: a.Scenario.Warmup, until: a.Scenario.Duration, engines: make([]float64, len(cfg.Nodes)), classes: map[string]*Class{}}
	if _, err = cluster.Run(cfg, src, t.add); err != nil {
		return nil, fmt.Errorf("%s at %g, seed %d: %w", policy, load, seed, err)
	}
	r := t.result()
	r.Policy, r.Load, r.Seed = policy, load, seed
	return r, nil
}

// peak is the prefill throughput of the pool's mean engine, which rules that want one are given.
func (a *Arena) peak(cfg *cluster.Config) float64 {
	var sum float64
	for i := range cfg.Nodes {
		e, err := engine.New(cfg.Nodes[i].Engine)
		if err != nil {
			return 0
		}
		const chunk = 8192
		sum += chunk / e.StepTime(0, 0, [2]int{chunk, 0})
	}
	return sum / float64(len(cfg.Nodes))
}

// tally adds up the records of a run.
type tally struct {
	warmup, until time.Duration
	requests, met int
	answered      int
	ttft          []float64
	itl, e2e      float64
	itls          int
	tokens        int
	prompt        float64
	cached        float64
	engines       []float64
	classes       map[string]*Class
}

func (t *tally) add(r *cluster.Record) {
	if r.Sent < t.warmup || t.until > 0 && r.Sent >= t.until {
		return
	}
	t.requests++
	c := t.classes[r.Class]
	if c == nil {
		c = new(Class)
		t.classes[r.Class] = c
	}
	c.Requests++
	if r.Met {
		t.met++
		c.Attainment++
	}
	if r.Node >= 0 {
		t.engines[r.Node]++
	}
	t.tokens += r.OutputTokens
	if r.Cause != fleet.Complete {
		return
	}
	t.answered++
	t.ttft = append(t.ttft, r.TTFT.Seconds())
	t.e2e += r.E2E.Seconds()
	if r.ITL > 0 {
		t.itl += r.ITL.Seconds()
		t.itls++
	}
	if r.CachedTokens >= 0 {
		t.cached += float64(r.CachedTokens)
		t.prompt += float64(r.PromptTokens)
	}
}

func (t *tally) result() *Result {
	r := &Result{Requests: t.requests, Classes: map[string]Class{}}
	if t.requests == 0 {
		return r
	}
	n := float64(t.requests)
	span := (t.until - t.warmup).Seconds()
	r.Attainment, r.Answered = float64(t.met)/n, float64(t.answered)/n
	for name, c := range t.classes {
		r.Classes[name] = Class{Requests: c.Requests, Attainment: c.Attainment / float64(c.Requests)}
	}
	if span > 0 {
		r.Goodput, r.Tokens = float64(t.met)/span, float64(t.tokens)/span
	}
	if t.answered > 0 {
		slices.Sort(t.ttft)
		r.TTFT = Times{stat.Mean(t.ttft), stat.Quantile(t.ttft, .5), stat.Quantile(t.ttft, .9), stat.Quantile(t.ttft, .99)}
		r.E2E = t.e2e / float64(t.answered)
	}
	if t.itls > 0 {
		r.ITL = t.itl / float64(t.itls)
	}
	if t.prompt > 0 {
		r.Hit = t.cached / t.prompt
	}
	r.LoadCV = stat.CV(t.engines)
	for _, e := range t.engines {
		r.Share = append(r.Share, e/n)
	}
	return r
}
