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
}

// Grid holds the results of a study: by policy, load and seed, in the study's order. A run that was
// not made is nil.
type Grid struct {
	Study   *Study
	Results [][][]*Result
}

// Run makes all runs. On an error or when ctx is done the runs made so far are returned with it.
func (s *Study) Run(ctx context.Context) (*Grid, error) {
	g := &Grid{Study: s, Results: make([][][]*Result, len(s.Policies))}
	type cell struct{ p, l, k int }
	var cells []cell
	for k := range s.Seeds { // seed by seed, so that what is done early is comparable
		for l := range s.Loads {
			for p := range s.Policies {
				cells = append(cells, cell{p, l, k})
			}
		}
	}
	for p := range s.Policies {
		g.Results[p] = make([][]*Result, len(s.Loads))
		for l := range s.Loads {
			g.Results[p][l] = make([]*Result, len(s.Seeds))
		}
	}
	var mu sync.Mutex
	var next, done int
	var first error
	var wg sync.WaitGroup
	for range max(s.Workers, 1) {
		wg.Go(func() {
			for {
				mu.Lock()
				if first != nil || next == len(cells) || ctx.Err() != nil {
					mu.Unlock()
					return
				}
				c := cells[next]
				next++
				mu.Unlock()
				r, err := s.Arena.Play(s.Policies[c.p], s.Loads[c.l], s.Seeds[c.k])
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				g.Results[c.p][c.l][c.k] = r
				done++
				if s.Progress != nil {
					s.Progress(done, len(cells))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return g, first
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
