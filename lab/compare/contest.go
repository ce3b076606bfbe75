package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/presage-router/presage/internal/stat"
)

// Contest holds one policy against the best of the others on one scenario: the best one of each load
// is chosen on other seeds than those it is compared on, so that choosing it flatters nobody.
type Contest struct {
	Arena    *Arena
	Ours     string
	Others   []string // of which the best is chosen
	Also     []string // compared with Ours at every load too
	Loads    []float64
	Choose   []uint64 // seeds
	Compare  []uint64 // other seeds
	Workers  int
	Progress func(done, total int)
}

// Cell is one load of a contest. Shares are in percent.
type Cell struct {
	Scenario string             `json:"scenario"`
	Policy   string             `json:"policy"` // ours
	Load     float64            `json:"load"`
	Best     string             `json:"best"`
	Means    map[string]float64 `json:"means"`  // attainment on the seeds for choosing, by policy
	Ours     Figures            `json:"ours"`   // on the seeds for comparing
	Theirs   Figures            `json:"theirs"` // of the best
	Diff     Difference         `json:"difference"`
	Also     map[string]Rival   `json:"also"`
}

// Rival is another policy beside the best one.
type Rival struct {
	Figures
	Diff Difference `json:"difference"`
}

// Figures are means over seeds.
type Figures struct {
	Attainment float64 `json:"slo_attainment"` // percent
	Goodput    float64 `json:"goodput_rps"`
	TTFTMean   float64 `json:"ttft_mean_ms"`
	TTFT90     float64 `json:"ttft_p90_ms"`
	TTFT99     float64 `json:"ttft_p99_ms"`
	ITL        float64 `json:"itl_mean_ms"`
	E2E        float64 `json:"e2e_mean_ms"`
	Hit        float64 `json:"hit_ratio"`
}

// Difference is ours minus theirs in points of attainment, paired by seed.
type Difference struct {
	Mean  float64    `json:"mean"`
	CI95  [2]float64 `json:"ci95"`
	Seeds int        `json:"seeds"`
	SD    float64    `json:"sd"`
}

// Within is the interval at another level, for several comparisons at once.
func (d *Difference) Within(level float64) [2]float64 {
	half := stat.StudentT(level, float64(d.Seeds-1)) * d.SD
	return [2]float64{d.Mean - half, d.Mean + half}
}

func attainment(r *Result) float64 { return 100 * r.Attainment }

// Run plays the contest.
func (c *Contest) Run(ctx context.Context) ([]Cell, error) {
	first := append(append([]string{c.Ours}, c.Others...), c.Also...)
	slices.Sort(first)
	first = slices.Compact(first)
	perLoad := 1 + 1 + len(c.Also)
	total, before := len(first)*len(c.Loads)*len(c.Choose)+perLoad*len(c.Loads)*len(c.Compare), 0
	progress := func(done, _ int) {
		if c.Progress != nil {
			c.Progress(before+done, total)
		}
	}
	chosen := &Study{Arena: c.Arena, Policies: first, Loads: c.Loads, Seeds: c.Choose, Workers: c.Workers, Progress: progress}
	g, err := chosen.Run(ctx)
	if err != nil {
		return nil, err
	}
	before = len(first) * len(c.Loads) * len(c.Choose)
	cells := make([]Cell, 0, len(c.Loads))
	for l, load := range c.Loads {
		cell := Cell{Scenario: c.Arena.Scenario.Name, Policy: c.Ours, Load: load, Means: map[string]float64{}, Also: map[string]Rival{}}
		for p, name := range first {
			cell.Means[name] = stat.Mean(g.Values(p, l, attainment))
			if slices.Contains(c.Others, name) && (cell.Best == "" || cell.Means[name] > cell.Means[cell.Best]) {
				cell.Best = name
			}
		}
		arms := []string{c.Ours, cell.Best}
		for _, a := range c.Also {
			if !slices.Contains(arms, a) {
				arms = append(arms, a)
			}
		}
		fresh := &Study{Arena: c.Arena, Policies: arms, Loads: []float64{load}, Seeds: c.Compare, Workers: c.Workers, Progress: progress}
		h, err := fresh.Run(ctx)
		if err != nil {
			return cells, err
		}
		before += len(arms) * len(c.Compare)
		cell.Ours, cell.Theirs = h.figures(0), h.figures(1)
		if cell.Diff, err = h.difference(1); err != nil {
			return cells, fmt.Errorf("%s at %g: %w", cell.Scenario, load, err)
		}
		for k, a := range arms[1:] {
			d, err := h.difference(k + 1)
			if err != nil {
				return cells, err
			}
			cell.Also[a] = Rival{Figures: h.figures(k + 1), Diff: d}
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

func (g *Grid) figures(p int) Figures {
	mean := func(m Metric) float64 { return stat.Mean(g.Values(p, 0, m)) }
	return Figures{
		Attainment: mean(attainment), Goodput: mean(func(r *Result) float64 { return r.Goodput }),
		TTFTMean: mean(func(r *Result) float64 { return 1e3 * r.TTFT.Mean }), TTFT90: mean(func(r *Result) float64 { return 1e3 * r.TTFT.P90 }),
		TTFT99: mean(func(r *Result) float64 { return 1e3 * r.TTFT.P99 }), ITL: mean(func(r *Result) float64 { return 1e3 * r.ITL.Mean }),
		E2E: mean(func(r *Result) float64 { return 1e3 * r.E2E.Mean }), Hit: mean(func(r *Result) float64 { return r.Hit }),
	}
}

// difference is policy 0 minus p.
func (g *Grid) difference(p int) (Difference, error) {
	d, err := g.Paired(0, p, 0, attainment)
	if err != nil {
		return Difference{}, err
	}
	half := (d.High - d.Low) / 2
	sd := 0.0
	if t := stat.StudentT(0.95, float64(d.N-1)); t > 0 {
		sd = half / t
	}
	return Difference{Mean: d.Mean, CI95: [2]float64{d.Low, d.High}, Seeds: d.N, SD: sd}, nil
}
