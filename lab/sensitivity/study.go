package sensitivity

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/router"
)

// Study plays one policy on one scenario at one load, plainly and in every setting.
type Study struct {
	Arena    *compare.Arena
	Policy   string
	Load     float64
	Seeds    []uint64
	Choices  []Choice
	Workers  int                   // runs at a time; 0: one
	Progress func(done, total int) // called after each run, one call at a time; nil: nobody wants to know
}

// Row is one setting, or the plain run. Figures are means over seeds, attainment in percent.
type Row struct {
	Dimension string `json:"dimension,omitempty"`
	Setting   string `json:"setting,omitempty"`
	Seeds     int    `json:"seeds"`

	Attainment float64 `json:"slo_attainment"`
	TTFT       float64 `json:"ttft_mean_ms"`
	TTFT90     float64 `json:"ttft_p90_ms"`
	ITL        float64 `json:"itl_mean_ms"`
	E2E        float64 `json:"e2e_mean_ms"`
	Hit        float64 `json:"hit_ratio"`

	// Diff is attainment less that of the plain run, in points, paired by seed; CI95 is its Student-t
	// interval. Both are nil where fewer than two seeds have both runs.
	Diff *float64    `json:"difference,omitempty"`
	CI95 *[2]float64 `json:"ci95,omitempty"`
}

// Table is what a study found: the plain run first, then the settings in order.
type Table struct {
	Scenario string  `json:"scenario"`
	Policy   string  `json:"policy"`
	Load     float64 `json:"load"`
	Rows     []Row   `json:"rows"`
}

// Check finds settings that the policy does not have, before anything is played.
func (s *Study) Check() error {
	for _, c := range s.Choices {
		for i := range c.Settings {
			if k := c.Settings[i].knobs; k != "" {
				if _, err := s.Arena.Policies.New(withKnobs(s.Policy, k), router.Params{}); err != nil {
					return fmt.Errorf("%s: %w", c.Name, err)
				}
			}
		}
	}
	return nil
}

// Run makes all runs, seed by seed. On an error or when ctx is done it returns the table of those
// made so far with it.
func (s *Study) Run(ctx context.Context) (*Table, error) {
	cells := []*cell{{}}
	for _, c := range s.Choices {
		for i := range c.Settings {
			cells = append(cells, &cell{dimension: c.Name, setting: &c.Settings[i]})
		}
	}
	for _, c := range cells {
		c.results = make([]*compare.Result, len(s.Seeds))
	}
	err := s.play(ctx, cells)
	t := &Table{Scenario: s.Arena.Scenario.Name, Policy: s.Policy, Load: s.Load}
	for _, c := range cells {
		done := slices.DeleteFunc(slices.Clone(c.results), func(r *compare.Result) bool { return r == nil })
		if len(done) == 0 {
			continue
		}
		row := figures(done)
		if c.setting != nil {
			row.Dimension, row.Setting = c.dimension, c.setting.Value
			row.against(c.results, cells[0].results)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, err
}

// cell is one setting, or nil, with its results by seed; nil: not made.
type cell struct {
	dimension string
	setting   *Setting
	results   []*compare.Result
}

// play makes the runs seed by seed, so that what is done early is comparable. After an error no
// further one is begun.
func (s *Study) play(ctx context.Context, cells []*cell) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	next, done, total := 0, 0, len(cells)*len(s.Seeds)
	for range min(max(s.Workers, 1), total) {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for first == nil && next < total {
				if first = ctx.Err(); first != nil {
					return
				}
				c, k := cells[next%len(cells)], next/len(cells)
				next++
				mu.Unlock()
				r, err := c.setting.play(s.Arena, s.Policy, s.Load, s.Seeds[k])
				mu.Lock()
				if err != nil {
					if first == nil {
						first = c.named(err)
					}
					return
				}
				c.results[k] = r
				done++
				if s.Progress != nil {
					s.Progress(done, total)
				}
			}
		})
	}
	wg.Wait()
	return first
}

func (c *cell) named(err error) error {
	if c.setting == nil {
		return err
	}
	return fmt.Errorf("%s %s: %w", c.dimension, c.setting.Value, err)
}

func attainment(r *compare.Result) float64 { return 100 * r.Attainment }

func figures(rs []*compare.Result) Row {
	mean := func(m compare.Metric) float64 { return stat.Mean(values(rs, m)) }
	return Row{
		Seeds: len(rs), Attainment: mean(attainment),
		TTFT:   mean(func(r *compare.Result) float64 { return 1e3 * r.TTFT.Mean }),
		TTFT90: mean(func(r *compare.Result) float64 { return 1e3 * r.TTFT.P90 }),
		ITL:    mean(func(r *compare.Result) float64 { return 1e3 * r.ITL.Mean }),
		E2E:    mean(func(r *compare.Result) float64 { return 1e3 * r.E2E.Mean }),
		Hit:    mean(func(r *compare.Result) float64 { return r.Hit }),
	}
}

func values(rs []*compare.Result, m compare.Metric) []float64 {
	v := make([]float64, len(rs))
	for i, r := range rs {
		v[i] = m(r)
	}
	return v
}

// against pairs a setting's runs with the plain ones of the same seeds.
func (r *Row) against(mine, plain []*compare.Result) {
	var x, y []float64
	for k := range mine {
		if mine[k] != nil && plain[k] != nil {
			x, y = append(x, attainment(mine[k])), append(y, attainment(plain[k]))
		}
	}
	if len(x) < 2 {
		return
	}
	d := stat.PairedDifference(x, y, 0.95)
	r.Diff, r.CI95 = &d.Mean, &[2]float64{d.Low, d.High}
}
