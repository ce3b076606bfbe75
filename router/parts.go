package router

import (
	"fmt"
	"slices"
)

// Parts are what a profile is made of where code composes it, instead of a configuration naming the
// parts. The slices become the profile's own.
type Parts struct {
	Filters   []Filter
	Scorers   []Scorer
	Weights   []float64 // one per scorer, finite and not negative
	Picker    Picker    // nil: [MaxPicker]
	Fallbacks int       // further endpoints named in a decision
}

// Compose makes a profile of parts. Scorers must have distinct names, which become the terms of its
// explanations. Endpoints that claim work but serve nothing are probed, after [DefaultProbe].
func Compose(name string, parts Parts) (*Profile, error) {
	p := &Profile{
		name: name, filters: parts.Filters, scorers: parts.Scorers, weights: parts.Weights, picker: parts.Picker,
		fallbacks: parts.Fallbacks, probe: prober{after: DefaultProbe},
	}
	if len(p.scorers) == 0 {
		return nil, fmt.Errorf("scorers: none given")
	}
	for _, s := range p.scorers {
		if slices.Contains(p.terms, s.Name()) {
			return nil, fmt.Errorf("scorers.%s: given twice", s.Name())
		}
		p.terms = append(p.terms, s.Name())
	}
	if err := checkWeights(p.terms, p.weights); err != nil {
		return nil, err
	}
	tame(p.weights)
	if p.picker == nil {
		p.picker = MaxPicker{}
	}
	return p, nil
}
