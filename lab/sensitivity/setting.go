package sensitivity

import (
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/compare"
)

// Setting is one thing wrong by so much.
type Setting struct {
	Value string // as it is written, of its dimension
	knobs string // added to the policy's name
	alter func(*run) error
}

// run is a cluster about to be run.
type run struct {
	*cluster.Config
	arena  *compare.Arena
	policy string
}

// play makes one run; a nil setting is the plain run.
func (s *Setting) play(a *compare.Arena, policy string, load float64, seed uint64) (*compare.Result, error) {
	if s == nil {
		return a.Play(policy, load, seed)
	}
	if s.knobs != "" {
		policy = withKnobs(policy, s.knobs)
	}
	if s.alter == nil {
		return a.Play(policy, load, seed)
	}
	return a.PlayIn(policy, load, seed, func(cfg *cluster.Config) error {
		if seer, ok := cfg.Policy.(cluster.Seer); ok && cfg.Seer == nil {
			cfg.Seer = seer // what is put before the policy does not pass it on
		}
		return s.alter(&run{Config: cfg, arena: a, policy: policy})
	})
}
