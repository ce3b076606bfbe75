package compare

import (
	"fmt"
	"time"

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

// Play runs one policy.
func (a *Arena) Play(policy string, load float64, seed uint64) (*Result, error) {
	return a.play(policy, load, seed, nil)
}

// play runs one policy in a cluster that attach, where there is one, adds to.
func (a *Arena) play(policy string, load float64, seed uint64, attach func(*cluster.Config)) (*Result, error) {
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
	if attach != nil {
		attach(&cfg)
	}
	t := newTally(a.Scenario.Warmup, a.Scenario.Duration, len(cfg.Nodes))
	if _, err = cluster.Run(cfg, src, t.add); err != nil {
		return nil, fmt.Errorf("%s at %g, seed %d: %w", policy, load, seed, err)
	}
	r := t.result()
	r.Policy, r.Load, r.Seed = policy, load, seed
	return r, nil
}

// peak is the prefill throughput of the pool's mean engine in tokens per second, which rules that want
// one are given.
func (a *Arena) peak(cfg *cluster.Config) float64 {
	var sum float64
	for i := range cfg.Nodes {
		e, err := engine.New(cfg.Nodes[i].Engine)
		if err != nil {
			return 0
		}
		const chunk = 8192
		sum += chunk / e.StepTime(0, 0, [2]int{chunk, 0}) * 1e6 // from microseconds
	}
	return sum / float64(len(cfg.Nodes))
}
