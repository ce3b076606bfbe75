package serve

import (
	"fmt"
	"reflect"

	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/experiment"
	"github.com/presage-router/presage/router/outlier"
)

// compose makes what decides under a configuration: its policy or its experiment, with shadows where
// they are wanted. What the configuration in force, was, made alike keeps its state; nil: nothing is.
func (s *Service) compose(was, next *config.Config) (router.Policy, error) {
	var in router.Policy
	if was != nil && sameDecider(was, next) {
		in = s.router.Policy()
		if _, shadow := experiment.Of(in); shadow != nil {
			in = shadow.In()
		}
	} else {
		var err error
		if in, err = s.decider(next); err != nil {
			return nil, err
		}
	}
	if len(next.Shadow) == 0 {
		return in, nil
	}
	shadows := make([]router.Policy, len(next.Shadow))
	for i, name := range next.Shadow {
		var err error
		if shadows[i], err = newPolicy(next, name, s.seed); err != nil {
			return nil, fmt.Errorf("shadow: %w", err)
		}
	}
	return experiment.NewShadow(in, shadows, 0, s.seed), nil
}

// decider makes the policy or the experiment whose decisions count.
func (s *Service) decider(c *config.Config) (router.Policy, error) {
	if len(c.Experiment.Arms) == 0 {
		return newPolicy(c, c.Policy, s.seed)
	}
	o, err := c.Experiment.Options(func(name string) (router.Policy, error) { return newPolicy(c, name, s.seed) })
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	o.Tripped = func(t experiment.Trip) {
		s.log.Error("experiment ended by a guardrail; the control decides everything", "reason", t.String(), "guardrail", t.Metric.String(),
			"arm", t.Arm, "control", t.Control, "at", t.At, "cells", t.Cells)
	}
	x, err := experiment.New(o)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	return x, nil
}

// samePolicy reports whether both configurations make the same decisions, shadows included.
func samePolicy(a, b *config.Config) bool {
	return sameDecider(a, b) && reflect.DeepEqual(a.Shadow, b.Shadow) && sameProfiles(a, b, a.Shadow)
}

// sameDecider reports whether both make the same policy or experiment, which then keeps its state.
func sameDecider(a, b *config.Config) bool {
	if a.Answer.Endpoints != b.Answer.Endpoints || !reflect.DeepEqual(a.Experiment, b.Experiment) {
		return false
	}
	if len(a.Experiment.Arms) == 0 {
		return a.Policy == b.Policy && sameProfiles(a, b, []string{a.Policy})
	}
	var arms []string
	for _, arm := range a.Experiment.Arms {
		arms = append(arms, arm.Policy)
	}
	return sameProfiles(a, b, arms)
}

func sameProfiles(a, b *config.Config, names []string) bool {
	for _, name := range names {
		p, inA := a.Profiles[name]
		q, inB := b.Profiles[name]
		if inA != inB || !sameProfile(p, q) {
			return false
		}
	}
	return true
}

// outliers makes the detector that keeps endpoints out, or nil.
func (s *Service) outliers(c *config.Config) *outlier.Detector {
	if !c.Outliers {
		return nil
	}
	return &outlier.Detector{Changed: func(ch outlier.Change) {
		switch ch.Kind {
		case outlier.Out:
			s.log.Warn("endpoint ejected", "endpoint", ch.Endpoint, "cause", ch.Cause.String(), "reason", ch.Detail, "probe_in", ch.Wait)
		case outlier.Missed:
			s.log.Info("endpoint stays ejected: its probe failed", "endpoint", ch.Endpoint, "reason", ch.Detail, "probe_in", ch.Wait)
		case outlier.Back:
			s.log.Info("endpoint recovered", "endpoint", ch.Endpoint, "cause", ch.Cause.String(), "was_out", ch.Wait)
		case outlier.Spared:
			s.log.Warn("endpoint ejected no more: others have left, too few would remain", "endpoint", ch.Endpoint, "cause", ch.Cause.String(), "was_out", ch.Wait)
		}
	}}
}
