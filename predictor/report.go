package predictor

import "github.com/presage-router/presage/features/fleet"

// Report is how a learner is doing.
type Report struct {
	Generation uint64
	Counts     Counts
	Classes    []ClassReport
}

// ClassReport is how one class is doing.
type ClassReport struct {
	Class   fleet.ClassID
	Answer  float64 // expected tokens of an answer
	Trust   float64 // share of matched prefix tokens that engines really held
	Sigma   float64 // of log errors between endpoints
	Drifts  int     // changes of the class as a whole
	Targets [targets]TargetReport
}

// TargetReport is how one target of a class is doing. Errors are fading means of the relative error
// over the last labels; NaN: none yet.
type TargetReport struct {
	Labels   int
	Error    float64 // of the blend
	Members  [len(MemberNames)]float64
	Weights  [len(MemberNames)]float64
	Champion int // member with the largest voice
	Fallback bool
	Trees    bool // trees are in use
	Drifting bool // a change of the class is being learned
}

// Report returns how the learner is doing.
func (l *Learner) Report() Report {
	r := Report{Generation: l.gen, Counts: l.Counts, Classes: make([]ClassReport, len(l.order))}
	for i, c := range l.order {
		k := &r.Classes[i]
		k.Class, k.Answer, k.Trust, k.Sigma = c.id, *c.answer, c.trust.mean(), c.sigma(l.slots)
		k.Drifts = c.drifts
		for t := range c.targets {
			tg, out := &c.targets[t], &k.Targets[t]
			out.Labels, out.Error, out.Fallback, out.Trees = tg.labels, tg.own.mean(), tg.fallback, tg.trees != nil
			out.Weights, out.Drifting = tg.weights(), c.unsettled[t] > 0
			for m := range tg.losses {
				out.Members[m] = tg.losses[m].mean()
				if out.Weights[m] > out.Weights[out.Champion] {
					out.Champion = m
				}
			}
		}
	}
	return r
}

// News reports whether anything was learned since the last [Learner.Freeze].
func (l *Learner) News() bool {
	if l.gen == 0 || len(l.order) != len(l.frozen.classes) {
		return true
	}
	for _, c := range l.order {
		if c.dirty {
			return true
		}
	}
	return false
}
