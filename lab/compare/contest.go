package compare

import (
	"context"
	"fmt"
	"math"
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
	Glance   []string // the same, on the first three of Compare alone
	Loads    []float64
	Choose   []uint64 // seeds
	Compare  []uint64 // other seeds
	Control  string   // policy that has to lose at the highest load; empty: none
	Workers  int
	Progress func(done, total int)

	runs *Runs // made so far, by Run and Knees together
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
	Control  *Control           `json:"control,omitempty"` // of the highest load
}

// Rival is another policy beside the best one.
type Rival struct {
	Figures
	Diff Difference `json:"difference"`
}

// Figures are means over seeds; times are 0 where nothing was answered.
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
	Mean   float64    `json:"mean"`
	CI95   [2]float64 `json:"ci95"`
	Seeds  int        `json:"seeds"`
	SE     float64    `json:"se"` // standard error of the mean
	P      float64    `json:"p"`
	Wins   int        `json:"wins"` // seeds
	Losses int        `json:"losses"`
	// What follows from looking at all cells together; see [AdjustCells].
	Holm    float64  `json:"p_holm"`
	CIAll   Interval `json:"ci95_all"`
	Verdict Verdict  `json:"verdict"`
	Needed  int      `json:"needed,omitempty"` // seeds in all that would settle it, where it is not settled

	of Comparison
}

// Within is the interval at another level, for several comparisons at once.
func (d *Difference) Within(level float64) [2]float64 {
	half := stat.StudentT(level, float64(d.Seeds-1)) * d.SE
	return [2]float64{d.Mean - half, d.Mean + half}
}

// AdjustCells looks at the differences to the best policies of all cells together: Holm's p-values, and
// intervals that hold at once. Each contest's cells are adjusted among themselves when they are made.
func AdjustCells(cells []Cell) {
	family := make([]*Comparison, len(cells))
	for i := range cells {
		family[i] = &cells[i].Diff.of
	}
	together(family)
	for i := range cells {
		d := &cells[i].Diff
		d.Holm, d.CIAll, d.Verdict, d.Needed = d.of.Holm, d.of.CIAll, d.of.Verdict, d.of.Needed
	}
}

func attainment(r *Result) float64 { return 100 * r.Attainment }

// played are the runs of this contest so far.
func (c *Contest) played() *Runs {
	if c.runs == nil {
		c.runs = &Runs{Arena: c.Arena}
	}
	return c.runs
}

// Run plays the contest. After an error, or when ctx is done, the cells that are complete are returned
// with it.
func (c *Contest) Run(ctx context.Context) ([]Cell, error) {
	first := slices.Concat([]string{c.Ours}, c.Others, c.Also, c.Glance)
	slices.Sort(first)
	first = slices.Compact(first)
	few := c.Compare[:min(glanced, len(c.Compare))]
	perLoad := (2+len(c.Also))*len(c.Compare) + len(c.Glance)*len(few)
	total, before := len(c.Loads)*(len(first)*len(c.Choose)+perLoad), 0
	progress := func(done, _ int) {
		if c.Progress != nil {
			c.Progress(before+done, total)
		}
	}
	chosen := &Study{Arena: c.Arena, Policies: first, Loads: c.Loads, Seeds: c.Choose, Workers: c.Workers, Progress: progress, Runs: c.played()}
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
		ours := func(name string) bool { return name == c.Ours }
		rivals := unique(append([]string{cell.Best}, slices.DeleteFunc(slices.Clone(c.Also), ours)...))
		if cell.Ours, err = c.hold(ctx, &cell, rivals, c.Compare, progress); err != nil {
			return cells, err
		}
		before += (1 + len(rivals)) * len(c.Compare)
		best := cell.Also[cell.Best]
		cell.Theirs, cell.Diff = best.Figures, best.Diff
		known := func(name string) bool { _, ok := cell.Also[name]; return ok || ours(name) }
		if glance := slices.DeleteFunc(unique(c.Glance), known); len(glance) > 0 {
			if _, err = c.hold(ctx, &cell, glance, few, progress); err != nil {
				return cells, err
			}
		}
		before += len(c.Glance) * len(few)
		if c.Control != "" && load == slices.Max(c.Loads) {
			if cell.Control, err = c.controlled(ctx, &cell); err != nil {
				return cells, err
			}
		}
		cells = append(cells, cell)
	}
	AdjustCells(cells)
	return cells, nil
}

// glanced is on how many seeds policies are glanced at.
const glanced = 3

// hold plays ours against rivals at the cell's load, adds them to the cell and returns our figures.
func (c *Contest) hold(ctx context.Context, cell *Cell, rivals []string, seeds []uint64, progress func(int, int)) (Figures, error) {
	arms := append([]string{c.Ours}, rivals...)
	s := &Study{Arena: c.Arena, Policies: arms, Loads: []float64{cell.Load}, Seeds: seeds, Workers: c.Workers, Progress: progress, Runs: c.played()}
	g, err := s.Run(ctx)
	if err != nil {
		return Figures{}, err
	}
	for k, name := range rivals {
		d, err := g.difference(k + 1)
		if err != nil {
			return Figures{}, fmt.Errorf("%s at %g: %w", cell.Scenario, cell.Load, err)
		}
		cell.Also[name] = Rival{Figures: g.figures(k + 1), Diff: d}
	}
	return g.figures(0), nil
}

// controlled plays the control at a load against the better of ours and the best.
func (c *Contest) controlled(ctx context.Context, cell *Cell) (*Control, error) {
	s := &Study{Arena: c.Arena, Policies: []string{c.Control}, Loads: []float64{cell.Load}, Seeds: c.Compare, Workers: c.Workers, Runs: c.played()}
	if _, err := s.Run(ctx); err != nil {
		return nil, err
	}
	against := cell.Policy
	if cell.Theirs.Attainment > cell.Ours.Attainment {
		against = cell.Best
	}
	return controlOf(c.played(), c.Control, against, cell.Load, c.Compare), nil
}

func (g *Grid) figures(p int) Figures {
	mean := func(m Metric) float64 { // 0 where nothing was answered
		v := slices.DeleteFunc(g.Values(p, 0, m), math.IsNaN)
		if len(v) == 0 {
			return 0
		}
		return stat.Mean(v)
	}
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
	c := differ(g.Values(0, 0, attainment), g.Values(p, 0, attainment), 1)
	return Difference{
		Mean: d.Mean, CI95: [2]float64{d.Low, d.High}, Seeds: d.N, SE: c.SD / math.Sqrt(float64(c.Seeds)), P: d.P, Wins: d.Wins, Losses: d.Losses,
		Holm: c.Holm, CIAll: c.CIAll, Verdict: c.Verdict, Needed: c.Needed, of: c,
	}, nil
}
