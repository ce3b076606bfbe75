package ab

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/report"
)

// Result is what a log shows. Times are in ms, shares from 0 to 1, differences in attainment and errors in
// percentage points; what is not known is null in JSON.
type Result struct {
	Files    []File                `json:"files,omitempty"`
	Unit     string                `json:"unit"`    // block, session or request
	Block    float64               `json:"block_s"` // length of a block, or of a cell of a split
	Washout  float64               `json:"washout_s"`
	Turnover float64               `json:"cache_turnover_s"` // 0: not known
	From     time.Time             `json:"from"`
	To       time.Time             `json:"to"`
	Requests int                   `json:"requests"` // records of the log
	Washed   int                   `json:"washed"`   // of these, left out at the start of blocks, or without an arm
	Control  string                `json:"control"`
	Arms     map[string]*ArmResult `json:"arms"`
	Paired   []Paired              `json:"paired"`  // arm minus control, the primary metric first
	Checks   []ArmCheck            `json:"checks"`  // conditions of a verdict
	Verdicts []Verdict             `json:"verdict"` // one for each arm against the control
	Off      []Estimate            `json:"off_policy"`
	Refused  []Refusal             `json:"refused"`
	Notes    []string              `json:"notes"`

	names    []string // of the plan's arms
	calendar []report.Block
	versus   []versus
	ended    []report.Trip // arms that end before the log does
}

// File is one log that was read.
type File struct {
	Path    string         `json:"path"`
	Rows    int            `json:"rows"`
	Skipped map[string]int `json:"skipped,omitempty"` // rows that could not be used, by reason
}

// ArmResult is what an arm's requests met, over all that counts.
type ArmResult struct {
	Policies []string     `json:"policies"`
	Blocks   int          `json:"blocks"` // or cells of a split
	Requests int          `json:"requests"`
	Rate     report.Value `json:"rate_rps"`
	InSLO    report.Value `json:"slo_attainment"`
	SLOs     int          `json:"slo_requests"` // that carried one
	TTFTMean report.Value `json:"ttft_mean_ms"`
	TTFT50   report.Value `json:"ttft_p50_ms"`
	TTFT90   report.Value `json:"ttft_p90_ms"`
	TTFT99   report.Value `json:"ttft_p99_ms"`
	ITL      report.Value `json:"itl_mean_ms"`
	Errors   report.Value `json:"error_ratio"`
	Cached   report.Value `json:"hit_ratio"` // of prompt tokens, where engines tell
}

// Paired is the difference of an arm and the control in one metric, the mean over pairs.
type Paired struct {
	A      string          `json:"a"`
	B      string          `json:"b"`
	Metric string          `json:"metric"`
	Unit   string          `json:"unit"`
	N      int             `json:"pairs"`
	Base   report.Value    `json:"base"` // of the control
	Diff   report.Value    `json:"diff"`
	CI     [2]report.Value `json:"ci95"`       // may be read at any time
	Fixed  [2]report.Value `json:"ci95_fixed"` // holds where the end was fixed beforehand
	P      report.Value    `json:"p_fixed"`
	SD     report.Value    `json:"sd"`            // of the differences of pairs
	Effect report.Value    `json:"design_effect"` // variance over that of independent requests; primary metric alone
	Ahead  int             `json:"ahead"`         // pairs in which the arm was above the control
	Needed *Needed         `json:"needed,omitempty"`

	diffs []float64
}

// Needed is how large an experiment would show a difference with 80 % power, at the scatter seen.
type Needed struct {
	Effect  float64      `json:"effect"`      // in the unit of the metric
	Fixed   report.Value `json:"pairs_fixed"` // read once, at the end
	AnyTime report.Value `json:"pairs"`       // read at any time
	Hours   report.Value `json:"hours"`       // until then, beyond those at hand
}

// ArmCheck is a check of one arm against the control; of all where the arm is empty.
type ArmCheck struct {
	Arm string `json:"arm,omitempty"`
	Check
}

// Verdict is what holds of an arm against the control.
type Verdict struct {
	Arm string `json:"arm"`
	report.Verdict
}

// Refusal is something that is not claimed, and why.
type Refusal struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// versus is what belongs to one arm.
type versus struct {
	arm     int
	pairs   int
	hours   float64 // that a pair takes
	carry   *report.CarryOver
	aa      *report.AA
	reasons []string // that forbid a verdict and are not the report's own rules
}

// level is that of intervals: with several arms all hold together (Bonferroni).
func (l *Ledger) level() float64 { return 1 - 0.05/float64(l.plan.control()) }

// Result sums the ledger up.
func (l *Ledger) Result() *Result {
	p := l.plan
	r := &Result{
		Unit: p.Unit, Block: p.Block.Seconds(), Washout: p.Washout.Seconds(), Turnover: p.Turnover.Seconds(), From: p.From, To: p.To,
		Requests: p.Records, Washed: l.washed + p.NoArm, Control: p.Arms[p.control()].Name, Arms: map[string]*ArmResult{},
		Off: []Estimate{}, Refused: []Refusal{}, Notes: []string{},
	}
	for i := range p.Arms {
		r.names = append(r.names, p.Arms[i].Name)
		r.Arms[p.Arms[i].Name] = l.arm(i)
	}
	aaCheck, aa := l.checkAA()
	common := []Check{aaCheck}
	if p.Unit == "block" {
		common = append(common, l.checkWashout(), l.checkStrays())
	}
	for _, c := range common {
		r.Checks = append(r.Checks, ArmCheck{"", c})
	}
	for arm := range p.control() {
		l.compare(r, arm, aa, common)
	}
	l.off(r)
	l.notes(r)
	r.calendar = l.calendar()
	unknown := report.Unknown()
	for i := range r.versus {
		c := r.Comparison(i, report.Method{RunHours: unknown, TTFTOff: unknown, ITLOff: unknown})
		r.Verdicts = append(r.Verdicts, Verdict{c.Ours, report.Judge(c)})
	}
	return r
}

// compare adds an arm's differences from the control and their checks.
func (l *Ledger) compare(r *Result, arm int, aa *report.AA, common []Check) {
	name := l.plan.Arms[arm].Name
	pairs, thin := l.pairs(arm)
	v := versus{arm: arm, pairs: len(pairs), hours: l.pairHours(len(pairs)), aa: aa}
	for i, m := range metrics {
		diffs, base := series(pairs, m.of)
		d := l.paired(name, r.Control, &m, diffs, base)
		if i == 0 {
			v.pairs = len(diffs)
			d.Effect = report.Value(designEffect(pairs, diffs))
			d.Needed = l.needed(&d, len(pairs))
		}
		r.Paired = append(r.Paired, d)
		if i == 0 && len(diffs) < len(pairs) {
			why := textf("%d of %d pairs have fewer than %d requests with an SLO on a side; see slo in presage.yaml", len(pairs)-len(diffs), len(pairs), fewest)
			r.Refused = append(r.Refused, Refusal{name + ": slo_attainment", why})
			if len(diffs) == 0 {
				v.pairs, v.reasons = len(pairs), append(v.reasons, why)
			}
		}
	}
	primary := r.Paired[len(r.Paired)-len(metrics)].diffs
	checks := []Check{checkDependence(primary)}
	if l.plan.Unit == "block" {
		carry, c := checkCarryOver(pairs)
		v.carry = c
		checks = append(checks, carry, l.checkArrivals(arm))
	}
	for _, c := range checks {
		r.Checks = append(r.Checks, ArmCheck{name, c})
	}
	for _, c := range append(slices.Clone(common), checks...) {
		if c.Reason != "" {
			v.reasons = append(v.reasons, c.Reason)
			r.Refused = append(r.Refused, Refusal{"a verdict on " + name, c.Reason})
		}
	}
	if v.pairs < leastPairs {
		r.Refused = append(r.Refused, Refusal{"a verdict on " + name, textf("not enough data: %d of %d %spairs needed", v.pairs, leastPairs, map[bool]string{true: "block "}[l.plan.Unit == "block"])})
	}
	if l.plan.Unit != "block" {
		r.Refused = append(r.Refused, Refusal{"a claim about the fleet", textf("a split by %s: the arms share queues and caches, so that the difference is not what a switch of everybody would bring", l.plan.Unit)})
	}
	if thin > 0 {
		r.Notes = append(r.Notes, textf("%s: %d blocks or cells with fewer than %d requests are left out.", name, thin, fewest))
	}
	r.versus = append(r.versus, v)
}

// paired is the difference in one metric.
func (l *Ledger) paired(a, b string, m *metric, diffs, base []float64) Paired {
	var seq stat.Sequence
	for _, d := range diffs {
		seq.Add(d)
	}
	anyTime, fixed := seq.Interval(l.level()), stat.PairedDifference(diffs, make([]float64, len(diffs)), l.level())
	return Paired{
		A: a, B: b, Metric: m.name, Unit: m.unit, N: len(diffs), Base: report.Value(stat.Mean(base)), Diff: report.Value(anyTime.Mean),
		CI: [2]report.Value{report.Value(anyTime.Low), report.Value(anyTime.High)}, Fixed: [2]report.Value{report.Value(fixed.Low), report.Value(fixed.High)},
		P: report.Value(fixed.P), SD: report.Value(seq.SD()), Effect: report.Unknown(), Ahead: fixed.Wins, diffs: diffs,
	}
}

// needed is what would settle the difference seen, or one that matters if that is smaller.
func (l *Ledger) needed(d *Paired, pairs int) *Needed {
	if !d.SD.Known() || d.N < 2 || d.SD <= 0 {
		return nil
	}
	effect := max(math.Abs(float64(d.Diff)), worthwhile)
	n := &Needed{Effect: effect, Fixed: report.Value(stat.PairsNeeded(effect, float64(d.SD), l.level(), power)), AnyTime: report.Value(stat.SequenceNeeded(effect, float64(d.SD), l.level(), power))}
	n.Hours = max(0, n.AnyTime-report.Value(d.N)) * report.Value(l.pairHours(pairs))
	return n
}

const (
	worthwhile = 1.0 // percentage points of attainment
	power      = 0.8
)

// pairHours is how long one of so many pairs took.
func (l *Ledger) pairHours(pairs int) float64 {
	kept := l.kept()
	if len(kept) == 0 {
		return math.NaN()
	}
	return float64(kept[len(kept)-1]-kept[0]+1) * l.plan.Block.Hours() / float64(pairs)
}

// designEffect is by how much the mean of the pairs' differences varies more than it would if every
// request were an independent draw.
func designEffect(pairs []pair, diffs []float64) float64 {
	var a, b tally
	for i := range pairs {
		for _, s := range pairs[i].a {
			a.slo, a.met = a.slo+s.slo, a.met+s.met
		}
		for _, s := range pairs[i].b {
			b.slo, b.met = b.slo+s.slo, b.met+s.met
		}
	}
	naive := func(t *tally) float64 {
		p := float64(t.met) / float64(t.slo)
		return 1e4 * p * (1 - p) / float64(t.slo)
	}
	if v := naive(&a) + naive(&b); v > 0 {
		return stat.Variance(diffs) / float64(len(diffs)) / v
	}
	return math.NaN()
}

// arm sums up all that counts of an arm.
func (l *Ledger) arm(arm int) *ArmResult {
	var all sums
	blocks, seconds := 0, 0.0
	for _, k := range l.kept() {
		c := l.cells[k]
		if s := c.arms[arm]; s != nil && !l.stray(c, arm) {
			all.merge(s)
			blocks++
			seconds += (l.plan.Block - l.plan.Washout).Seconds()
		}
	}
	share := func(a, b float64) report.Value {
		if b == 0 {
			return report.Unknown()
		}
		return report.Value(a / b)
	}
	q := &l.ttfts[arm]
	return &ArmResult{
		Policies: l.plan.Arms[arm].Policies, Blocks: blocks, Requests: all.arrived, Rate: share(float64(all.arrived), seconds),
		InSLO: share(float64(all.met), float64(all.slo)), SLOs: all.slo, TTFTMean: share(1e3*all.ttft, float64(all.tokens)),
		TTFT50: report.Value(1e3 * q.Quantile(.5)), TTFT90: report.Value(1e3 * q.Quantile(.9)), TTFT99: report.Value(1e3 * q.Quantile(.99)),
		ITL: share(1e3*all.itl, float64(all.gaps)), Errors: share(float64(all.failed), float64(all.ended)), Cached: share(all.cached, all.reported),
	}
}

// off adds the estimates of exploring arms.
func (l *Ledger) off(r *Result) {
	explored := false
	for i := range l.plan.Arms {
		if l.drawn[i] == nil {
			continue
		}
		explored = true
		e, refused := l.drawn[i].estimates(l.plan.Arms[i].Name)
		r.Off, r.Refused = append(r.Off, e...), append(r.Refused, refused...)
		if d := l.drawn[i]; d.without > 0 {
			r.Notes = append(r.Notes, textf("%s: %d of %d decisions that were drawn got no first token, or not from the endpoint drawn; the estimates are of the others.", l.plan.Arms[i].Name, d.without, d.n))
		}
	}
	if !explored {
		r.Refused = append(r.Refused, Refusal{"off-policy estimates", "no arm explores; see experiment.explore in docs/experiments.md"})
	}
}

var nan = math.NaN()

func textf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func interval(mean, low, high float64) report.Interval {
	return report.Interval{Mean: report.Value(mean), Low: report.Value(low), High: report.Value(high)}
}
