package compare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Match compares policies on one scenario: the first with each other one, at several loads, with the
// same seeds.
type Match struct {
	Arena     *Arena
	Policies  []string // at least one; the first is held against the others
	Loads     []float64
	Seeds     []uint64
	Knees     bool   // look for sustained loads too, from Loads on
	Reference string // policy that changed decisions are counted against; empty: weighted where it plays, else the first
	Control   string // policy that has to lose at the highest load; empty: none
	Workers   int    // runs at a time; 0: one
	// Progress is told of every run; see [Runs]. While knees are looked for, the number planned is an
	// estimate.
	Progress func(done, planned int)
}

// searchRuns is the number of runs that a search for a knee is expected to add to the loads given.
const searchRuns = 3

// bout is a match being played.
type bout struct {
	*Match
	runs  *Runs
	knees map[string]map[uint64]SeedKnee

	mu   sync.Mutex
	left map[uint64]int // tasks of a seed that are not done
}

// Run plays the match. When ctx is done, or a run fails, the outcome holds the seeds that were
// finished by then.
func (m *Match) Run(ctx context.Context) (*Outcome, error) {
	b := &bout{Match: m, knees: map[string]map[uint64]SeedKnee{}, left: map[uint64]int{}}
	b.runs = &Runs{Arena: m.Arena, Reference: m.reference(), Progress: m.Progress}
	noKnee := ""
	if m.Knees {
		noKnee = NoKnee(m.Arena.Scenario)
	}
	tasks := slices.Clone(m.Policies)
	perSeed := len(m.Policies) * len(m.Loads)
	if m.Control != "" && !slices.Contains(m.Policies, m.Control) {
		tasks = append(tasks, m.Control)
		perSeed++
	}
	knees := m.Knees && noKnee == ""
	if knees {
		perSeed += searchRuns * len(m.Policies)
	}
	b.runs.Plan(perSeed * len(m.Seeds))
	for _, seed := range m.Seeds {
		b.left[seed] = len(tasks)
	}
	for _, p := range m.Policies {
		b.knees[p] = map[uint64]SeedKnee{}
	}
	err := each(m.Workers, len(m.Seeds)*len(tasks), func(i int) error { // seed by seed: a seed counts when all of it is there
		policy, seed := tasks[i%len(tasks)], m.Seeds[i/len(tasks)]
		if err := b.play(ctx, policy, seed, knees); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.left[seed]--; b.left[seed] == 0 {
			b.runs.forget(seed)
		}
		return nil
	})
	return b.outcome(noKnee), err
}

// play makes the runs of one policy on one seed.
func (b *bout) play(ctx context.Context, policy string, seed uint64, knees bool) error {
	if !slices.Contains(b.Policies, policy) {
		_, err := b.runs.Play(ctx, policy, slices.Max(b.Loads), seed)
		return err
	}
	for _, load := range b.Loads {
		r, err := b.runs.Play(ctx, policy, load, seed)
		if err != nil {
			return err
		}
		if r.Requests == 0 {
			return fmt.Errorf("scenario %s: no request arrives after the warm-up at load %g: give it a longer duration", b.Arena.Scenario.Name, load)
		}
	}
	if !knees {
		return nil
	}
	k, err := seek(ctx, b.runs, policy, seed, b.Loads)
	if err != nil {
		return err
	}
	b.runs.Plan(len(k.Points) - len(b.Loads) - searchRuns)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.knees[policy][seed] = k
	return nil
}

// seek searches with the runs of an arena.
func seek(ctx context.Context, runs *Runs, policy string, seed uint64, loads []float64) (SeedKnee, error) {
	k, err := search(loads, func(load float64) (Point, error) {
		r, err := runs.Play(ctx, policy, load, seed)
		if err != nil {
			return Point{}, err
		}
		p := Point{Load: load, Offered: r.Offered, Attainment: r.Attainment, Goodput: r.Goodput}
		if r.Requests == 0 {
			p.Attainment = 1 // nothing was missed
		}
		return p, nil
	})
	k.Seed = seed
	return k, err
}

// reference is the policy that changed decisions are counted against.
func (m *Match) reference() string {
	switch {
	case m.Reference != "":
		return m.Reference
	case slices.Contains(m.Policies, "weighted"):
		return "weighted"
	}
	return m.Policies[0]
}

// outcome sums up the seeds that are complete.
func (b *bout) outcome(noKnee string) *Outcome {
	s := b.Arena.Scenario
	o := &Outcome{
		Scenario: s.Name, About: s.About, Expects: s.Expects, Endpoints: s.Endpoints(), Duration: s.Duration, Warmup: s.Warmup,
		Asked: len(b.Seeds), SeedList: []uint64{}, Order: b.Policies, Reference: b.reference(), NoKnee: noKnee, Primary: []Comparison{},
	}
	for _, seed := range b.Seeds {
		if b.left[seed] == 0 {
			o.SeedList = append(o.SeedList, seed)
		}
	}
	o.Seeds, o.Partial = len(o.SeedList), len(o.SeedList) < len(b.Seeds)
	o.Done, o.Planned = b.runs.Made()
	if o.Seeds == 0 {
		o.Policies, o.Paired, o.Sweep = map[string]*Standing{}, []Comparison{}, []Section{}
		o.Load = headline(b.Loads)
		o.remark()
		return o
	}
	for _, load := range b.Loads {
		o.Sweep = append(o.Sweep, section(b.runs, b.Policies, load, o.SeedList))
	}
	if b.Knees && noKnee == "" {
		o.Knees = map[string]*Knee{}
		for _, p := range b.Policies {
			var seeds []SeedKnee
			for _, seed := range o.SeedList {
				seeds = append(seeds, b.knees[p][seed])
			}
			o.Knees[p] = kneeOf(p, seeds)
			for i := range o.Sweep {
				o.Sweep[i].Policies[p].Knee = o.Knees[p]
			}
			if p != b.Policies[0] {
				o.Primary = append(o.Primary, compareKnees(o.Knees[b.Policies[0]], o.Knees[p]))
			}
		}
	}
	o.Control = control(b.runs, b.Match, o)
	Adjust([]*Outcome{o})
	o.remark()
	return o
}

// headline is the load that a comparison is summed up at.
func headline(loads []float64) float64 {
	best := slices.Min(loads)
	for _, l := range loads {
		if l <= 1 && l > best {
			best = l
		}
	}
	return best
}

// Adjust looks at the comparisons of all outcomes together: metric by metric, Holm's p-values, the
// intervals that hold at once, and the verdicts that follow. Each outcome is alone when it is made.
func Adjust(outcomes []*Outcome) {
	families := map[string][]*Comparison{}
	for _, o := range outcomes {
		for i := range o.Sweep {
			for k := range o.Sweep[i].Paired {
				c := &o.Sweep[i].Paired[k]
				families[c.Metric] = append(families[c.Metric], c)
			}
			for k := range o.Sweep[i].ByClass {
				families["class"] = append(families["class"], &o.Sweep[i].ByClass[k].Comparison)
			}
		}
		if o.Knees == nil {
			continue
		}
		for i := range o.Primary {
			families[KneeMetric] = append(families[KneeMetric], &o.Primary[i])
		}
	}
	for _, family := range families {
		together(family)
	}
	for _, o := range outcomes {
		o.settle()
	}
}

// settle fills in what follows from the sections: the headline one, the primary comparisons, and
// whether anything may be read.
func (o *Outcome) settle() {
	at := 0.0
	if len(o.Sweep) > 0 {
		loads := make([]float64, len(o.Sweep))
		for i := range o.Sweep {
			loads[i] = o.Sweep[i].Load
		}
		at = headline(loads)
	}
	for i := range o.Sweep {
		if o.Sweep[i].Load == at {
			o.Section = o.Sweep[i]
		}
	}
	if o.Knees == nil {
		o.Primary = []Comparison{}
		for _, c := range o.Paired {
			if c.Metric == PrimaryMetric {
				o.Primary = append(o.Primary, c)
			}
		}
	}
	if o.Control == nil || o.Control.Lost {
		return
	}
	o.Void = fmt.Sprintf("the control arm did not lose: %s attains %.1f %% of SLOs at load %g, %s %.1f %%; do not read further, or raise the load",
		o.Control.Policy, 100*o.Control.Attainment, o.Control.Load, o.Control.Against, 100*(o.Control.Attainment+o.Control.Diff))
	for i := range o.Primary {
		o.Primary[i].Verdict = VoidResult
	}
}

// control compares the control with the best policy at the highest load.
func control(runs *Runs, m *Match, o *Outcome) *Control {
	if m.Control == "" {
		return nil
	}
	load := slices.Max(m.Loads)
	against, best := "", math.Inf(-1)
	for _, p := range m.Policies {
		if a := o.Sweep[slices.Index(m.Loads, load)].Policies[p].Mean[PrimaryMetric]; p != m.Control && a > best {
			best, against = a, p
		}
	}
	if against == "" {
		return nil // it plays alone
	}
	return controlOf(runs, m.Control, against, load, o.SeedList)
}

// controlOf compares a control with the policy that it has to lose to.
func controlOf(runs *Runs, policy, against string, load float64, seeds []uint64) *Control {
	of := func(policy string) []float64 {
		var v []float64
		for _, seed := range seeds {
			v = append(v, runs.Result(policy, load, seed).Attainment)
		}
		return v
	}
	c := &Control{Policy: policy, Load: load, Against: against}
	d := differ(of(against), of(policy), 1)
	c.Attainment, c.Diff, c.CI95 = d.base, d.Diff, d.CI95
	// The interval of a few seeds is wide, of one there is none: five points are clear enough there.
	c.Lost = d.CI95[0] > 0 || d.Seeds < MinSeeds && d.Diff >= 0.05
	return c
}
