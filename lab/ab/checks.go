package ab

import (
	"math"
	"slices"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/report"
)

const (
	leastPairs    = 12   // for a verdict
	leastFolds    = 6    // for the A/A check
	significant   = 0.05 // level of the checks
	mostImbalance = 0.10 // of arrivals
	mostStrays    = 0.02 // of requests, in blocks of another arm
	dependent     = 0.01 // one-sided level of the check for dependent pairs
)

// Check is a condition of a verdict.
type Check struct {
	Name   string       `json:"name"`
	OK     bool         `json:"ok"`
	Known  bool         `json:"known"` // false: there was too little to check; it forbids nothing
	P      report.Value `json:"p"`     // of the test, where it is one
	About  string       `json:"about"` // what was found
	Reason string       `json:"reason,omitempty"`
}

// test is a check by a p-value.
func test(name string, p float64, about, reason string) Check {
	c := Check{Name: name, P: report.Value(p), Known: !math.IsNaN(p), About: about, OK: !(p < significant)}
	if !c.OK {
		c.Reason = reason
	}
	return c
}

// checkAA compares what cannot differ: another arm of the control's policy, else two halves of the
// control.
func (l *Ledger) checkAA() (Check, *report.AA) {
	twin := l.twin()
	var diffs []float64
	what := "neighbouring blocks of " + l.plan.Arms[l.plan.control()].Name
	if l.plan.Unit != "block" {
		what = "two halves of the " + l.plan.Unit + "s of " + l.plan.Arms[l.plan.control()].Name
	}
	if twin >= 0 {
		pairs, _ := l.pairs(twin)
		diffs, _ = series(pairs, metrics[0].of)
		what = l.plan.Arms[twin].Name + " and " + l.plan.Arms[l.plan.control()].Name + ", of one policy"
	} else {
		diffs = l.folds()
	}
	if len(diffs) < leastFolds {
		return Check{Name: "A/A", OK: true, P: report.Unknown(), About: textf("not enough data: %d of %d pairs of %s needed", len(diffs), leastFolds, what)}, nil
	}
	d := stat.PairedDifference(diffs, make([]float64, len(diffs)), 0.95)
	aa := &report.AA{P: report.Value(d.P), N: len(diffs), Wide: report.Value((d.High - d.Low) / 2)}
	return test("A/A", d.P, textf("%s differ by %+.2f points over %d pairs, %s", what, d.Mean, len(diffs), chance(d.P)),
		textf("A/A rejects at 5 %%: %s differ (%s)", what, chance(d.P))), aa
}

// twin is an arm that the control's policy decides too, or -1.
func (l *Ledger) twin() int {
	control := &l.plan.Arms[l.plan.control()]
	for i := range l.plan.Arms[:l.plan.control()] {
		if a := &l.plan.Arms[i]; len(a.Policies) == 1 && slices.Equal(a.Policies, control.Policies) {
			return i
		}
	}
	return -1
}

// halves is what the first and the second halves of blocks say of a metric.
type halves struct {
	first, second stat.Interval
	p             float64 // that they are equal; NaN: too few
}

func halvesOf(pairs []pair, of func(*tally) float64) halves {
	var first, second []float64
	for i := range pairs {
		at := func(half int) float64 {
			of := func(s *sums) float64 { return of(&s.halves[half]) }
			return mean(pairs[i].a, of) - mean(pairs[i].b, of)
		}
		if a, b := at(0), at(1); !math.IsNaN(a - b) {
			first, second = append(first, a), append(second, b)
		}
	}
	if len(first) < leastFolds {
		return halves{p: math.NaN()}
	}
	return halves{stat.MeanInterval(first, 0.95), stat.MeanInterval(second, 0.95), stat.PairedDifference(second, first, 0.95).P}
}

// checkCarryOver compares the arms' difference in the first halves of blocks with that in the second:
// what one arm leaves behind in queues and caches makes them differ, as does a queue that grows.
// Attainment and TTFT are tested, adjusted by Holm.
func checkCarryOver(pairs []pair) (Check, *report.CarryOver) {
	slo, ttft := halvesOf(pairs, attained), halvesOf(pairs, firstToken)
	p := stat.Holm([]float64{slo.p, ttft.p})
	what, unit, h, least := "attainment", "points", slo, p[0]
	if !(least <= p[1]) && !math.IsNaN(p[1]) {
		what, unit, h, least = "TTFT", "ms", ttft, p[1]
	}
	if math.IsNaN(least) {
		return Check{Name: "carry-over", OK: true, P: report.Unknown(), About: textf("not enough data: %d pairs with requests in both halves of blocks needed", leastFolds)}, nil
	}
	var out *report.CarryOver
	if !math.IsNaN(slo.p) {
		out = &report.CarryOver{
			First: interval(slo.first.Mean, slo.first.Low, slo.first.High), Second: interval(slo.second.Mean, slo.second.Low, slo.second.High), P: report.Value(p[0]),
		}
	}
	about := textf("difference in %s %+.4g %s in first halves of blocks, %+.4g in second, %s", what, round3(h.first.Mean), unit, round3(h.second.Mean), chance(least))
	return test("carry-over", least, about, textf("%s: blocks carry over into each other, or queues grow within them, so that the size depends on how long blocks are", about)), out
}

func round3(v float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	if !(e > 0) || math.IsInf(e, 0) {
		return v
	}
	return math.Round(v/e) * e
}

// chance is a p-value as it is written.
func chance(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return textf("p = %.2g", p)
}

// checkWashout: what a block inherits must be gone before it counts.
func (l *Ledger) checkWashout() Check {
	p := l.plan
	need := max(leastWash, p.Turnover)
	c := Check{Name: "washout", Known: true, OK: p.short == "", P: report.Unknown(), Reason: p.short}
	c.About = textf("%s at the start of blocks of %s; %s wanted, the longer of 60 s and the caches' turnover, %s", brief(p.Washout), brief(p.Block), brief(need), briefOr(p.Turnover, "unknown"))
	return c
}

// checkArrivals compares the rates at which the arms of a switchback met requests.
func (l *Ledger) checkArrivals(arm int) Check {
	a, b := l.rate(arm), l.rate(l.plan.control())
	by := max(a, b)/min(a, b) - 1
	c := Check{Name: "arrivals", Known: !math.IsNaN(by), OK: !(by > mostImbalance), P: report.Unknown(), About: textf("%.2f and %.2f requests/s, %.1f %% apart", a, b, 100*by)}
	if !c.OK {
		c.Reason = textf("arrivals differ by %.0f %% between the arms, %d %% are allowed: they met other traffic", 100*by, int(100*mostImbalance))
	}
	return c
}

// rate is how many requests per second of what counts of its blocks an arm met.
func (l *Ledger) rate(arm int) float64 {
	n, seconds := 0, 0.0
	for _, k := range l.kept() {
		c := l.cells[k]
		if s := c.arms[arm]; s != nil && !l.stray(c, arm) {
			n += s.arrived
			seconds += (l.plan.Block - l.plan.Washout).Seconds()
		}
	}
	return float64(n) / seconds
}

// checkStrays: in a switchback only one arm is in force at a time, on all replicas.
func (l *Ledger) checkStrays() Check {
	n, strays := 0, 0
	for _, c := range l.cells {
		for arm, s := range c.arms {
			if s != nil {
				n += s.arrived
				if l.stray(c, arm) {
					strays += s.arrived
				}
			}
		}
	}
	share := float64(strays) / float64(n)
	c := Check{Name: "one arm at a time", Known: n > 0, OK: !(share > mostStrays), P: report.Unknown(), About: textf("%.2g %% of the requests met another arm than the rest of their block", 100*share)}
	if n == 0 {
		c.About = "no request counts"
	}
	if !c.OK {
		c.Reason = textf("%.0f %% of the requests met another arm than the rest of their block: the clocks or the configurations of replicas differ, or these are no blocks", 100*share)
	}
	return c
}

// checkDependence looks at whether the difference of one pair foretells that of the next, as it does
// where cells are shorter than what disturbs them.
func checkDependence(diffs []float64) Check {
	r := neighbours(diffs)
	c := Check{Name: "independence", Known: len(diffs) >= leastPairs && !math.IsNaN(r), OK: true, P: report.Unknown(), About: textf("correlation of neighbouring pairs %+.2f", r)}
	if !c.Known {
		c.About = textf("not enough data: %d of %d pairs needed", len(diffs), leastPairs)
		return c
	}
	// Under independence r is about N(0, 1/n).
	p := math.Erfc(r*math.Sqrt(float64(len(diffs))/2)) / 2
	if c.P = report.Value(p); p < dependent {
		c.OK, c.Reason = false, textf("neighbouring pairs depend on each other (correlation %+.2f): use longer blocks, or --block for a split", r)
	}
	return c
}

// neighbours is the correlation of the values with their next.
func neighbours(x []float64) float64 {
	m, between, within := stat.Mean(x), 0.0, 0.0
	for i, v := range x {
		within += (v - m) * (v - m)
		if i > 0 {
			between += (v - m) * (x[i-1] - m)
		}
	}
	return between / within
}
