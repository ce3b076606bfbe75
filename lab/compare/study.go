package compare

import (
	"context"
	"fmt"
	"sync"

	"github.com/presage-router/presage/internal/stat"
)

// Study is a grid of runs.
type Study struct {
	Arena    *Arena
	Policies []string
	Loads    []float64
	Seeds    []uint64
	Workers  int                   // runs at a time; 0: one
	Progress func(done, total int) // called after each run; nil: nobody wants to know
	Runs     *Runs                 // that were made before, in the same arena; nil: none
}

// Grid holds the results of a study: by policy, load and seed, in the study's order. A run that was
// not made is nil.
type Grid struct {
	Study   *Study
	Results [][][]*Result
}

// Run makes all runs. On an error or when ctx is done the runs made so far are returned with it.
func (s *Study) Run(ctx context.Context) (*Grid, error) {
	runs := s.Runs
	if runs == nil {
		runs = &Runs{Arena: s.Arena}
	}
	perSeed := len(s.Loads) * len(s.Policies)
	var mu sync.Mutex
	done := 0
	err := each(s.Workers, len(s.Seeds)*perSeed, func(i int) error { // seed by seed, so that what is done early is comparable
		p, l, k := i%len(s.Policies), i/len(s.Policies)%len(s.Loads), i/perSeed
		if _, err := runs.Play(ctx, s.Policies[p], s.Loads[l], s.Seeds[k]); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		if s.Progress != nil {
			s.Progress(done, len(s.Seeds)*perSeed)
		}
		return nil
	})
	g := &Grid{Study: s, Results: make([][][]*Result, len(s.Policies))}
	for p, policy := range s.Policies {
		g.Results[p] = make([][]*Result, len(s.Loads))
		for l, load := range s.Loads {
			for _, seed := range s.Seeds {
				g.Results[p][l] = append(g.Results[p][l], runs.Result(policy, load, seed))
			}
		}
	}
	return g, err
}

// Metric is one figure of a result.
type Metric func(*Result) float64

// Values are a metric over the seeds of policy p at load l, runs that were not made left out.
func (g *Grid) Values(p, l int, m Metric) []float64 {
	var v []float64
	for _, r := range g.Results[p][l] {
		if r != nil {
			v = append(v, m(r))
		}
	}
	return v
}

// Paired compares policy a with b at load l: the mean difference of a metric over the seeds that
// both have, with its Student-t interval.
func (g *Grid) Paired(a, b, l int, m Metric) (stat.Paired, error) {
	var x, y []float64
	for k := range g.Study.Seeds {
		if ra, rb := g.Results[a][l][k], g.Results[b][l][k]; ra != nil && rb != nil {
			x, y = append(x, m(ra)), append(y, m(rb))
		}
	}
	if len(x) < 2 {
		return stat.Paired{}, fmt.Errorf("not enough data: %d of 2 paired seeds needed", len(x))
	}
	return stat.PairedDifference(x, y, 0.95), nil
}
