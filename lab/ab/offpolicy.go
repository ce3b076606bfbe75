package ab

import (
	"maps"
	"math"
	"slices"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/report"
)

const (
	mostWeight  = 20
	leastESS    = 0.05 // of the decisions
	leastDrawn  = 12   // cells of time, for an interval
	roundWeight = 1e-9 // what dividing by a propensity may add to a weight
)

// target is a rule of choice among the endpoints that an exploring arm draws from.
type target int

const (
	ownPick target = iota // the arm's policy without exploring
	evenly                // each of the endpoints as likely: what a choice without ranking brings
	targets
)

func (t target) String() string {
	return [...]string{"own pick, always", "any of the cheapest, each as likely"}[t]
}

// chance is the probability with which the target picks the endpoint of a rank.
func (t target) chance(c *features.Choice, rank int) float64 {
	switch {
	case t == evenly:
		return 1 / float64(c.Among)
	case rank == 0:
		return 1
	}
	return 0
}

// drawn collects what the decisions of an exploring arm showed. Sums are kept by cell of time: decisions
// of one cell are not independent, so cells are what intervals count.
type drawn struct {
	n       int // decisions drawn from several endpoints
	without int // of these, left out: no first token, or served elsewhere than decided
	bad     int // of these, left out: no propensity
	blind   int // counted, but nothing was foretold of some endpoint
	most    [targets]float64
	square  [targets]float64
	cells   map[int64]*drawnCell
}

type drawnCell struct {
	n      float64
	weight [targets]float64 // Σw
	times  [targets]float64 // Σw·y
	direct [targets]float64 // Σ doubly robust scores
}

func newDrawn() *drawn { return &drawn{cells: map[int64]*drawnCell{}} }

func (d *drawn) add(k int64, o *features.Observation) {
	d.n++
	c, p := &o.Choice, o.Propensity
	switch {
	case !(p > 0):
		d.bad++
		return
	case !o.Stream || o.TTFT <= 0 || o.Endpoint != o.Picked:
		d.without++
		return
	}
	in := d.cells[k]
	if in == nil {
		in = new(drawnCell)
		d.cells[k] = in
	}
	in.n++
	y := o.TTFT.Seconds()
	for _, v := range c.TTFT[:c.Among] {
		if v <= 0 {
			d.blind++
			break
		}
	}
	for t := range targets {
		w := t.chance(c, c.Rank) / p
		d.most[t] = max(d.most[t], w)
		d.square[t] += w * w
		in.weight[t] += w
		in.times[t] += w * y
		direct := w * (y - float64(c.TTFT[c.Rank]))
		for r := range c.Among {
			direct += t.chance(c, r) * float64(c.TTFT[r])
		}
		in.direct[t] += direct
	}
}

// Estimate is what one decision of a target would have brought, its queues being as they were.
type Estimate struct {
	Arm       string          `json:"arm"`
	Target    string          `json:"target"`
	Method    string          `json:"method"`     // SNIPS or doubly robust
	TTFT      report.Interval `json:"ttft_ms"`    // mean
	N         int             `json:"n"`          // decisions
	ESS       report.Value    `json:"ess_ratio"`  // (Σw)²/(nΣw²)
	MaxWeight report.Value    `json:"max_weight"` // largest
}

// estimates are those of an arm, and why some are refused. The last two, without weights, are the
// differences of the targets: what ranking saves.
func (d *drawn) estimates(arm string) ([]Estimate, []Refusal) {
	what := "off-policy estimates of " + arm
	if d == nil {
		return nil, []Refusal{{what, "the arm does not explore: see experiment.explore"}}
	}
	n := 0.0
	cells := ordered(d.cells)
	for _, c := range cells {
		n += c.n
	}
	switch {
	case d.bad > 0:
		return nil, []Refusal{{what, textf("propensity: missing in %d of %d decisions that were drawn", d.bad, d.n)}}
	case len(cells) < leastDrawn:
		return nil, []Refusal{{what, textf("not enough data: %d of %d cells of time needed", len(cells), leastDrawn)}}
	}
	var out []Estimate
	var refused []Refusal
	usable := 0
	for t := range targets {
		e := Estimate{Arm: arm, Target: t.String(), Method: "SNIPS", N: int(n), MaxWeight: report.Value(d.most[t])}
		sum := 0.0
		for _, c := range cells {
			sum += c.weight[t]
		}
		e.ESS = report.Value(sum * sum / (n * d.square[t]))
		if why := weightsReason(e.ESS, e.MaxWeight); why != "" {
			refused = append(refused, Refusal{what + ": " + e.Target, why})
			continue
		}
		usable++
		e.TTFT = d.ratio(func(c *drawnCell) (float64, float64) { return c.times[t], c.weight[t] })
		out = append(out, e)
		if d.blind > 0 {
			refused = append(refused, Refusal{what + ": " + e.Target + ", doubly robust", textf("%d of %d decisions lack forecasts of all endpoints", d.blind, int(n))})
			continue
		}
		e.Method = "doubly robust"
		e.TTFT = d.ratio(func(c *drawnCell) (float64, float64) { return c.direct[t], c.n })
		out = append(out, e)
	}
	if usable == int(targets) && d.blind == 0 {
		out = append(out, Estimate{
			Arm: arm, Target: "saved by ranking, per decision", Method: "doubly robust", N: int(n),
			ESS: report.Unknown(), MaxWeight: report.Unknown(),
			TTFT: d.ratio(func(c *drawnCell) (float64, float64) { return c.direct[evenly] - c.direct[ownPick], c.n }),
		})
	}
	return out, refused
}

// weightsReason is why weights allow no estimate; empty: they do.
func weightsReason(ess, most report.Value) string {
	switch {
	case most > mostWeight*(1+roundWeight):
		return textf("a weight of %.3g: above %d", most, mostWeight)
	case !(ess >= leastESS):
		return textf("an effective sample of %.2g %% of the decisions: below %g %%", 100*ess, 100*leastESS)
	}
	return ""
}

// ratio is Σa/Σb over cells, in ms, with the interval of the linearised estimator whose independent
// units are cells: u = a - θb, variance m/(m-1)·Σ(u-ū)²/(Σb)².
func (d *drawn) ratio(of func(*drawnCell) (a, b float64)) report.Interval {
	var sumA, sumB float64
	cells := ordered(d.cells)
	for _, c := range cells {
		a, b := of(c)
		sumA, sumB = sumA+a, sumB+b
	}
	theta, square := sumA/sumB, 0.0
	for _, c := range cells {
		a, b := of(c)
		square += (a - theta*b) * (a - theta*b)
	}
	m := float64(len(cells))
	half := stat.StudentT(0.95, m-1) * math.Sqrt(m/(m-1)*square) / sumB
	return interval(1e3*theta, 1e3*(theta-half), 1e3*(theta+half))
}

// ordered are the cells in order of time, so that sums come out the same each time.
func ordered[C any](cells map[int64]C) []C {
	out := make([]C, 0, len(cells))
	for _, k := range slices.Sorted(maps.Keys(cells)) {
		out = append(out, cells[k])
	}
	return out
}
