package predictor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unique"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor/gbdt"
)

func (c *class) save() ClassState {
	s := ClassState{
		None: c.id == fleet.ClassID{}, Prior: c.prior, Theta: c.theta.State(), Phi: c.phi.State(), Steps: c.steps,
		Answer: *c.answer, Context: c.context.save(), Trust: c.trust.save(),
	}
	if !s.None {
		k := c.id.Value()
		s.Model, s.GPU, s.Engine, s.TP = k.Model, k.GPU, k.Engine, k.TP
	}
	for t := range c.targets {
		s.Targets[t] = c.targets[t].save()
	}
	return s
}

func (s *ClassState) restore() (*class, error) {
	var id fleet.ClassID
	for _, name := range []string{s.Model, s.GPU, s.Engine} {
		if len(name) > maxName {
			return nil, fmt.Errorf("a name of %d bytes, more than %d", len(name), maxName)
		}
	}
	if s.TP < 0 || s.TP > 1<<20 {
		return nil, fmt.Errorf("tp: %d", s.TP)
	}
	if !s.None {
		id = unique.Make(fleet.Class{Model: s.Model, GPU: s.GPU, Engine: s.Engine, TP: s.TP})
	}
	if err := s.Prior.Check(); err != nil {
		return nil, fmt.Errorf("prior: %w", err)
	}
	c := newClass(id, s.Prior)
	if err := c.theta.Restore(s.Theta); err != nil {
		return nil, fmt.Errorf("theta: %w", err)
	}
	if err := c.phi.Restore(s.Phi); err != nil {
		return nil, fmt.Errorf("phi: %w", err)
	}
	if !(s.Answer >= 0 && s.Answer <= 1<<20) || s.Steps < 0 {
		return nil, fmt.Errorf("answer_tokens %v, steps %d: not possible", s.Answer, s.Steps)
	}
	c.steps, *c.answer, c.dirty = s.Steps, s.Answer, true
	if err := c.context.restore(s.Context, maxContext); err != nil {
		return nil, fmt.Errorf("context: %w", err)
	}
	if err := c.trust.restore(s.Trust, 1); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	for t := range c.targets {
		if err := c.targets[t].restore(&s.Targets[t]); err != nil {
			return nil, fmt.Errorf("targets[%d]: %w", t, err)
		}
	}
	return c, nil
}

// Check refuses coefficients that are no law: they are finite and not negative.
func (l *Law) Check() error {
	const most = 1e6
	for i, v := range append(l.Theta[:len(l.Theta):len(l.Theta)], l.Phi[:]...) {
		if !(v >= 0 && v <= most) {
			return fmt.Errorf("coefficient %d: %v: not within 0 and %v", i, v, most)
		}
	}
	if !(l.Budget >= 1 && l.Budget <= 1e8) {
		return fmt.Errorf("budget: %v tokens: not within 1 and 1e8", l.Budget)
	}
	return nil
}

func (f *fading) save() [2]float64 { return [2]float64{f.sum, f.weight} }

// restore takes a fading mean of values between 0 and most.
func (f *fading) restore(s [2]float64, most float64) error {
	const slack = 1 + 1e-9
	if !(s[1] >= 0 && s[1] <= slack) || !(s[0] >= 0 && s[0] <= most*s[1]*slack) {
		return fmt.Errorf("%v: no mean of values from 0 to %v", s, most)
	}
	f.sum, f.weight = s[0], s[1]
	return nil
}

// Bounds of what a state may hold beyond the constants of learning.
const (
	maxName    = 4096
	maxContext = 1e12 // tokens
	maxLog     = 30.0 // of a time in seconds: 1e13
	maxLeaf    = 60.0 // of a forecast of trees, a logarithm too
)

func (t *target) save() TargetState {
	s := TargetState{
		Fast: t.fast.State(), Slow: t.slow.State(), Recent: slices.Clone(t.recent), Labels: t.labels, Cut: t.cut, Own: t.own.save(),
		Bands: t.bands.State(), Fallback: t.fallback, Rows: appendRows(nil, t.rows), Fitted: t.fitted, High: t.high,
	}
	for m := range t.losses {
		s.Losses[m] = t.losses[m].save()
	}
	if checkTrees(t.trees) == nil && checkTrees(t.ratio) == nil {
		s.Trees, s.Ratio = t.trees, t.ratio
	}
	return s
}

func (t *target) restore(s *TargetState) error {
	if err := t.fast.Restore(s.Fast); err != nil {
		return fmt.Errorf("fast: %w", err)
	}
	if err := t.slow.Restore(s.Slow); err != nil {
		return fmt.Errorf("slow: %w", err)
	}
	for m := range s.Losses {
		if err := t.losses[m].restore(s.Losses[m], lossCap); err != nil {
			return fmt.Errorf("losses[%d]: %w", m, err)
		}
	}
	if err := t.own.restore(s.Own, lossCap); err != nil {
		return fmt.Errorf("own: %w", err)
	}
	if err := t.bands.Restore(s.Bands); err != nil {
		return fmt.Errorf("bands: %w", err)
	}
	var err error
	if t.rows, err = parseRows(s.Rows); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	if len(s.Recent) > longWindow || s.Labels < max(len(s.Recent), len(t.rows)) || s.Fitted < 0 || s.Fitted > s.Labels || s.Cut < 0 || s.Cut > s.Labels {
		return fmt.Errorf("labels: %d, of which %d were fitted, %d cut, %d recent and %d rows: not possible", s.Labels, s.Fitted, s.Cut, len(s.Recent), len(t.rows))
	}
	for i, v := range s.Recent {
		if !(math.Abs(v) <= maxLog) {
			return fmt.Errorf("recent[%d]: %v: not within %v of zero", i, v, maxLog)
		}
	}
	if (s.Trees == nil) != (s.Ratio == nil) {
		return errors.New("trees: one of two models is missing")
	}
	if err := errors.Join(checkTrees(s.Trees), checkTrees(s.Ratio)); err != nil {
		return fmt.Errorf("trees: %w", err)
	}
	for f, v := range s.High {
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("high[%d]: %v: not finite", f, x)
		}
	}
	t.recent, t.labels, t.cut, t.fallback, t.fitted = slices.Clone(s.Recent), s.Labels, s.Cut, s.Fallback, s.Fitted
	t.trees, t.ratio, t.high = s.Trees, s.Ratio, s.High
	return nil
}

func checkTrees(m *gbdt.Model) error {
	if m == nil {
		return nil
	}
	if m.Dim() != int(features.Dim) {
		return fmt.Errorf("%d features, not %d", m.Dim(), features.Dim)
	}
	if low, high := m.Range(); !(low >= -maxLeaf && high <= maxLeaf) {
		return fmt.Errorf("forecasts from %v to %v: not within %v of zero", low, high, maxLeaf)
	}
	return nil
}
