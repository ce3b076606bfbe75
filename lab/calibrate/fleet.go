package calibrate

import (
	"context"
	"fmt"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

// outcome is what a policy reached on a scenario, as means over seeds.
type outcome struct {
	Requests        int     // counted, over all seeds
	TokensPerSecond float64 // of answers that ended between warm-up and end
	E2E50           float64 // seconds
}

// seeds of the runs that compare policies, paired by arrivals.
const seeds = 3

// contest runs a scenario under policies and returns their outcomes in the same order.
func contest(ctx context.Context, table engine.Table, s *workload.Scenario, policies ...string) ([]outcome, error) {
	out := make([]outcome, len(policies))
	for i, name := range policies {
		for seed := range uint64(seeds) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := compete(table, s, name, seed+1, &out[i]); err != nil {
				return nil, fmt.Errorf("scenario %s, policy %s: %w", s.Name, name, err)
			}
		}
	}
	return out, nil
}

// compete runs a scenario once and adds its share to the outcome.
func compete(table engine.Table, s *workload.Scenario, name string, seed uint64, o *outcome) error {
	policy, err := contestant(name)
	if err != nil {
		return err
	}
	cfg := cluster.Config{Policy: policy, Seed: seed, Duration: s.Duration}
	for i := range s.Fleet {
		e, err := s.Fleet[i].Config(table)
		if err != nil {
			return err
		}
		for range s.Fleet[i].Count {
			cfg.Nodes = append(cfg.Nodes, cluster.Node{Engine: e})
		}
	}
	src, err := s.Source(workload.Options{Seed: seed})
	if err != nil {
		return err
	}
	var e2e []float64
	tokens := 0
	_, err = cluster.Run(cfg, src, func(r *cluster.Record) {
		if end := r.Sent + r.E2E; end > s.Warmup && end <= s.Duration {
			tokens += r.OutputTokens
		}
		if r.Sent >= s.Warmup {
			e2e = append(e2e, r.E2E.Seconds())
		}
	})
	o.Requests += len(e2e)
	o.TokensPerSecond += float64(tokens) / (s.Duration - s.Warmup).Seconds() / seeds
	o.E2E50 += stat.Median(e2e) / seeds
	return err
}

// contestant returns a fresh policy: one of package baseline, or llm-d-router's scorers with weights.
func contestant(name string) (router.Policy, error) {
	weights, ok := map[string]map[string]float64{
		"3-2-2": {"prefix": 3, "queue": 2, "kv": 2},
		"1-1-1": {"prefix": 1, "queue": 1, "kv": 1},
		"load":  {"queue": 1, "kv": 1},
	}[name]
	if !ok {
		return baseline.Policies().New(name, router.Params{Seed: 1})
	}
	scorers := map[string]*float64{}
	for scorer, w := range weights {
		scorers[scorer] = &w
	}
	return router.NewProfile(name, router.ProfileSpec{Scorers: scorers})
}
