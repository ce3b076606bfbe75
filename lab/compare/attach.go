package compare

import (
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/router"
)

// PlayIn runs one policy as [Arena.Play] does, in a cluster that alter has changed. What alter attaches
// to it serves this run alone.
func (a *Arena) PlayIn(policy string, load float64, seed uint64, alter func(*cluster.Config) error) (*Result, error) {
	var failed error
	r, err := a.play(policy, load, seed, func(cfg *cluster.Config) { failed = alter(cfg) })
	if failed != nil {
		return nil, failed
	}
	return r, err
}

// NewPolicy makes a policy of the arena's registry as every run has one.
func (a *Arena) NewPolicy(name string, cfg *cluster.Config, seed uint64) (router.Policy, error) {
	return a.Policies.New(name, router.Params{Seed: seed, PeakPrefill: a.peak(cfg)})
}
