package router

// Profile is the policy of weighted scorers: filters take candidates out, every scorer rates the
// rest in [0,1], the picker chooses by the weighted sum. Its explanation holds weight x score per
// scorer and candidate. It serves one router; [NewProfile] makes it.
type Profile struct {
	name      string
	filters   []Filter
	scorers   []Scorer
	weights   []float64
	picker    Picker
	fallbacks int
	warnings  []string
	probe     prober

	terms []string // names of scorers
	keep  []bool
	part  []float64
	score []float64
}

// Name implements [Policy].
func (p *Profile) Name() string { return p.name }

// Warnings returns what is odd, though allowed, about the profile's configuration.
func (p *Profile) Warnings() []string { return p.warnings }

// Route implements [Policy]. It returns [ErrSaturated] when the filters leave nobody.
func (p *Profile) Route(q *Query, d *Decision) error {
	values := d.Why.Size(unitScore, p.terms, len(q.Keep))
	probe := p.probe.due(q)
	left := p.filter(q, d)
	if probe >= 0 && !p.keep[probe] {
		p.keep[probe], d.Why.Filtered[probe] = true, ""
		left++
	}
	if left == 0 {
		return ErrSaturated
	}
	p.rate(q, values)
	for i, k := range p.keep {
		if k {
			d.Why.Totals[i] = float32(p.score[i])
		}
	}
	if probe >= 0 {
		d.Index, d.Propensity, d.Why.Reason = probe, 1, ByExplore
	} else {
		p.pick(q, d)
	}
	p.probe.visited(&q.Snap.States[d.Index])
	d.Rank(q, p.keep, p.fallbacks)
	return nil
}

// filter applies the filters, names them in the explanation and returns how many candidates are left.
func (p *Profile) filter(q *Query, d *Decision) (left int) {
	p.keep = append(p.keep[:0], q.Keep...)
	for _, f := range p.filters {
		f.Filter(q, p.keep)
		for i, k := range p.keep {
			if q.Keep[i] && !k && d.Why.Filtered[i] == "" {
				d.Why.Filtered[i] = f.Name()
			}
		}
	}
	for i, k := range p.keep {
		p.keep[i] = k && q.Keep[i] // a filter may only take out
		if p.keep[i] {
			left++
		}
	}
	return left
}

// rate fills the weighted sums and the terms they are made of.
func (p *Profile) rate(q *Query, values []float32) {
	n, cols := len(p.keep), len(p.scorers)
	p.score, p.part = zeroed(p.score, n), zeroed(p.part, n)
	for t, s := range p.scorers {
		w := p.weights[t]
		if w == 0 {
			continue
		}
		clear(p.part)
		s.Score(q, p.keep, p.part)
		for i, k := range p.keep {
			if !k {
				continue
			}
			v := w * unit(p.part[i])
			p.score[i] += v
			values[i*cols+t] = float32(v)
		}
	}
}

// unit bounds a score to [0,1]; what is not a number counts nothing.
func unit(v float64) float64 {
	if v > 0 {
		return min(v, 1)
	}
	return 0
}

func (p *Profile) pick(q *Query, d *Decision) {
	d.Index, d.Propensity = p.picker.Pick(q, p.keep, p.score)
	draw, ok := p.picker.(Drawer)
	if ok {
		d.Why.Drawn = zeroed(d.Why.Drawn, len(p.keep))
		draw.Chances(p.keep, p.score, d.Why.Drawn)
	}
	d.Judge(q, p.keep)
	if best, _ := highest(p.keep, p.score); ok && p.score[d.Index] < best {
		d.Why.Reason = draw.Drawn()
	}
}

// Weights returns the weights in the order of the explanation's terms. The caller must not change them.
func (p *Profile) Weights() []float64 { return p.weights }

// SetWeights replaces the weights, in the order of the explanation's terms. It may be called by a
// policy that wraps the profile, before it calls Route; weights must be finite and not negative.
func (p *Profile) SetWeights(w []float64) error {
	if err := checkWeights(p.terms, w); err != nil {
		return err
	}
	copy(p.weights, w)
	tame(p.weights)
	return nil
}

// Scorers returns the scorers in the order of the explanation's terms. The caller must not change them.
func (p *Profile) Scorers() []Scorer { return p.scorers }

var _ Policy = (*Profile)(nil)
