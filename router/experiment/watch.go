package experiment

import (
	"math"
	"slices"
	"time"

	"github.com/presage-router/presage/internal/stat"
)

const (
	leastCell  = 5 * time.Second
	leastCount = 20 // requests of each arm in a cell
	mostCells  = 60
	fewCells   = 6
	falseTrip  = 1e-7 // one-sided level of each look
	hardHarm   = 0.5  // share of failures beyond the control's that needs no test
	hardCount  = 50
	mostTTFTs  = 512 // kept per arm and cell
)

// watch compares one arm with the control.
type watch struct {
	rules []rule
	least time.Duration // of a cell
	tests []float64     // by number of cells: how many standard errors are no chance
	begun time.Time     // of the open cell; zero: it has no request yet
	arm   sums
	ctl   sums
	last  [2]rates // of the cell before: arm, control
}

// rule is one guardrail with its last differences.
type rule struct {
	Guardrail
	harms []float64 // oldest first
}

// sums are an arm's requests within a cell.
type sums struct {
	rates
	slo, met int
	ttfts    []float64 // seconds
	stride   int       // every so manieth is kept
	seen     int
}

type rates struct{ n, failed int }

// critical returns the one-sided critical values of Student's test, by number of cells.
func critical() []float64 {
	out := make([]float64, mostCells+1)
	for n := fewCells; n <= mostCells; n++ {
		out[n] = stat.StudentT(1-2*falseTrip, float64(n-1))
	}
	return out
}

func (w *watch) start(rules []Guardrail, least time.Duration, tests []float64) {
	w.least, w.tests = least, tests
	for _, g := range rules {
		w.rules = append(w.rules, rule{Guardrail: g, harms: make([]float64, 0, mostCells)})
	}
}

// add takes a result in and returns the trip that follows, if one does.
func (w *watch) add(r *Result, control bool) *Trip {
	if w.begun.IsZero() {
		w.begun = r.At
	}
	s := &w.arm
	if control {
		s = &w.ctl
	}
	s.add(r)
	if t := w.hard(r.At); t != nil {
		return t
	}
	if r.At.Sub(w.begun) < w.least || w.arm.n < leastCount || w.ctl.n < leastCount {
		return nil
	}
	t := w.close(r.At)
	w.last = [2]rates{w.arm.rates, w.ctl.rates}
	w.arm.clear()
	w.ctl.clear()
	w.begun = time.Time{}
	return t
}

// hard trips without a test on failures that nobody needs one for.
func (w *watch) hard(at time.Time) *Trip {
	a := rates{w.arm.n + w.last[0].n, w.arm.failed + w.last[0].failed}
	c := rates{w.ctl.n + w.last[1].n, w.ctl.failed + w.last[1].failed}
	if a.n < hardCount || c.n < hardCount {
		return nil
	}
	harm := a.share() - c.share()
	for i := range w.rules {
		if g := &w.rules[i]; g.Metric == Errors && harm >= max(hardHarm, g.Margin) {
			return &Trip{At: at, Metric: Errors, Harm: harm, Margin: g.Margin}
		}
	}
	return nil
}

func (r rates) share() float64 { return float64(r.failed) / float64(r.n) }

// close ends the cell and tests each rule.
func (w *watch) close(at time.Time) *Trip {
	for i := range w.rules {
		g := &w.rules[i]
		harm, ok := w.harm(g.Metric)
		if !ok {
			continue
		}
		if len(g.harms) == mostCells {
			g.harms = append(g.harms[:0], g.harms[1:]...)
		}
		g.harms = append(g.harms, harm)
		if mean, shown := g.shown(w.tests); shown {
			if g.Metric == TTFT {
				mean = math.Exp(mean)
			}
			return &Trip{At: at, Metric: g.Metric, Harm: mean, Margin: g.Margin, Cells: len(g.harms)}
		}
	}
	return nil
}

// harm is by how much the arm was worse in the cell, as far as there were requests to tell.
func (w *watch) harm(m Metric) (float64, bool) {
	switch m {
	case Errors:
		return w.arm.share() - w.ctl.share(), true
	case Attainment:
		if w.arm.slo < leastCount || w.ctl.slo < leastCount {
			return 0, false
		}
		return float64(w.ctl.met)/float64(w.ctl.slo) - float64(w.arm.met)/float64(w.arm.slo), true
	case TTFT:
		if w.arm.seen < leastCount || w.ctl.seen < leastCount {
			return 0, false
		}
		return math.Log(w.arm.p90() / w.ctl.p90()), true
	case numMetrics:
	}
	return 0, false
}

// shown reports whether the mean harm is beyond the margin and, by Student's test, none by chance.
func (g *rule) shown(tests []float64) (mean float64, ok bool) {
	n := len(g.harms)
	mean = stat.Mean(g.harms)
	if n < fewCells || mean <= g.margin() {
		return mean, false
	}
	return mean, mean > tests[n]*stat.SD(g.harms)/math.Sqrt(float64(n))
}

func (s *sums) add(r *Result) {
	s.n++
	if r.Failed {
		s.failed++
	}
	if r.SLO {
		s.slo++
		if r.Met {
			s.met++
		}
	}
	if r.TTFT <= 0 {
		return
	}
	s.stride = max(s.stride, 1)
	if s.seen%s.stride == 0 {
		if len(s.ttfts) == mostTTFTs { // keep every other, from here on too
			for i := range mostTTFTs / 2 {
				s.ttfts[i] = s.ttfts[2*i]
			}
			s.ttfts = s.ttfts[:mostTTFTs/2]
			s.stride *= 2
		}
		if s.seen%s.stride == 0 {
			s.ttfts = append(s.ttfts, r.TTFT.Seconds())
		}
	}
	s.seen++
}

func (s *sums) p90() float64 {
	slices.Sort(s.ttfts)
	return stat.Quantile(s.ttfts, 0.9)
}

func (s *sums) clear() { *s = sums{ttfts: s.ttfts[:0]} }
