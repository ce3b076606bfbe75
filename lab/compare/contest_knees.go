package compare

import (
	"context"
	"sync"
)

// KneeCell holds the sustained loads of a scenario against each other.
type KneeCell struct {
	Scenario string             `json:"scenario"`
	Policy   string             `json:"policy"` // ours
	NoKnee   string             `json:"no_knee,omitempty"`
	Best     string             `json:"best"`  // of the others, by the mean knee on the seeds for choosing
	Means    map[string]float64 `json:"means"` // those knees
	Knees    map[string]*Knee   `json:"knees"` // on the seeds for comparing: ours, the best, and those beside
	Ratio    Ratio              `json:"ratio"` // ours to the best
	Also     map[string]Ratio   `json:"also"`  // ours to each other one of Knees
}

// Knees finds sustained loads, seed by seed, from the contest's loads on: of all others on the seeds for
// choosing, of ours, of the best of them and of those beside on the seeds for comparing. Runs that Run
// has made are not made again. A scenario that has no knee gives a cell that says so.
func (c *Contest) Knees(ctx context.Context) (*KneeCell, error) {
	cell := &KneeCell{
		Scenario: c.Arena.Scenario.Name, Policy: c.Ours, NoKnee: NoKnee(c.Arena.Scenario), Means: map[string]float64{},
		Knees: map[string]*Knee{}, Also: map[string]Ratio{},
	}
	if cell.NoKnee != "" {
		return cell, nil
	}
	others := unique(c.Others)
	arms := unique(append([]string{c.Ours}, c.Also...))
	total := len(others)*len(c.Choose) + (len(arms)+1)*len(c.Compare)
	done := 0
	progress := func() {
		if done++; c.Progress != nil {
			c.Progress(min(done, total), total)
		}
	}
	chosen, err := c.seek(ctx, others, c.Choose, progress)
	if err != nil {
		return nil, err
	}
	for _, name := range others {
		cell.Means[name] = chosen[name].Load
		if cell.Best == "" || cell.Means[name] > cell.Means[cell.Best] {
			cell.Best = name
		}
	}
	if cell.Best != "" {
		arms = unique(append(arms, cell.Best))
	}
	if cell.Knees, err = c.seek(ctx, arms, c.Compare, progress); err != nil {
		return nil, err
	}
	for _, name := range arms[1:] {
		cell.Also[name] = KneeRatio(cell.Knees[c.Ours], cell.Knees[name])
	}
	cell.Ratio = cell.Also[cell.Best]
	return cell, nil
}

// seek finds the knees of policies on some seeds.
func (c *Contest) seek(ctx context.Context, policies []string, seeds []uint64, progress func()) (map[string]*Knee, error) {
	found := make(map[string][]SeedKnee, len(policies))
	for _, p := range policies {
		found[p] = make([]SeedKnee, len(seeds))
	}
	runs := c.played()
	var mu sync.Mutex
	err := each(c.Workers, len(policies)*len(seeds), func(i int) error {
		policy, k := policies[i%len(policies)], i/len(policies)
		got, err := seek(ctx, runs, policy, seeds[k], c.Loads)
		mu.Lock()
		defer mu.Unlock()
		found[policy][k] = got
		progress()
		return err
	})
	knees := make(map[string]*Knee, len(policies))
	for p, s := range found {
		knees[p] = kneeOf(p, s)
	}
	return knees, err
}
