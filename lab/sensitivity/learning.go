package sensitivity

import (
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/priors"
	"github.com/presage-router/presage/predictor"
)

// pupil is how a predictor is set up.
type pupil struct {
	prior      int
	untaught   bool // of times
	unlabelled bool // endpoints: one class for all of a model
}

// The priors of a pupil.
const (
	seeded  = iota // the arena's own
	generic        // one law for all hardware
	exact          // laws fitted to the engines of the run
)

func learning(value string) (Setting, error) {
	p, err := oneOf(value, map[string]pupil{
		"class":       {},
		"off-generic": {prior: generic, untaught: true},
		"off-exact":   {prior: exact, untaught: true},
		"generic":     {prior: generic},
		"pooled":      {prior: generic, unlabelled: true},
	}, "class", "off-generic", "off-exact", "generic", "pooled")
	return Setting{alter: func(r *run) error {
		o := r.arena.Learner
		switch p.prior {
		case generic:
			o.Prior = nil
		case exact:
			laws, err := fitted(r.Nodes)
			if err != nil {
				return err
			}
			o.Prior = func(c fleet.Class) (predictor.Law, bool) {
				l, ok := laws[hardware{c.Model, c.GPU, c.TP}]
				return l, ok
			}
		}
		r.Learner, r.Untaught, r.Unlabelled = predictor.NewLearner(o), p.untaught, p.unlabelled
		return nil
	}}, err
}

// hardware is what a law is fitted to.
type hardware struct {
	model, gpu string
	tp         int
}

func fitted(nodes []cluster.Node) (map[hardware]predictor.Law, error) {
	laws := map[hardware]predictor.Law{}
	for i := range nodes {
		c := nodes[i].Engine.Coefs
		h := hardware{c.Model, c.GPU, max(c.TP, 1)}
		if _, ok := laws[h]; ok {
			continue
		}
		l, err := priors.Fit(c)
		if err != nil {
			return nil, err
		}
		laws[h] = l
	}
	return laws, nil
}
