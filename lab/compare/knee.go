package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/workload"
)

// How knees are looked for. Loads are multiples of the scenario's rate.
const (
	sustained  = 0.90 // attainment that a sustained load has
	leastLoad  = 0.1  // below it nothing is looked for
	mostLoad   = 4    // times the highest load of the scenario
	kneeGap    = 0.05 // of the knee, that the loads around it may be apart
	coarseGap  = 0.10 // from which on a knee is called coarse
	mostPoints = 40   // runs of one search
)

// NoKnee says why a scenario has no sustained load; empty: it has one. A load is sustained in a run
// whose conditions are those of its whole length, or change once and stay: then the knee is that of the
// run as a whole. An event that passes, as an engine that dies and returns, makes attainment a matter of
// how long the run is. So failures and upgrades have none; a herd has one, because all its arrivals
// grow with the load, and so has an engine that becomes slow for good.
func NoKnee(s *workload.Scenario) string {
	for i := range s.Events {
		what := ""
		switch e := &s.Events[i]; e.Kind {
		case cluster.Slow:
			if i > 0 && e.Factor == 1 {
				what = "recovers"
			}
		case cluster.Stall:
			what = "stalls"
		case cluster.Kill, cluster.Revive:
			what = "dies or returns"
		case cluster.Upgrade:
			what = "is upgraded"
		case cluster.Fail:
			what = "fails requests"
		case cluster.Blind:
			what = "shows old metrics"
		}
		if what != "" {
			return "no sustained rate: an engine " + what + " at " + s.Events[i].At.String() + ", so attainment depends on the length of the run"
		}
	}
	return ""
}

// search finds the knee of one policy on one seed. play makes a run at a load.
func search(loads []float64, play func(load float64) (Point, error)) (SeedKnee, error) {
	var k SeedKnee
	add := func(load float64) error {
		p, err := play(load)
		if err != nil {
			return err
		}
		i, _ := slices.BinarySearchFunc(k.Points, p, func(a, b Point) int { return cmp.Compare(a.Load, b.Load) })
		k.Points = slices.Insert(k.Points, i, p)
		return nil
	}
	for _, l := range loads {
		if err := add(l); err != nil {
			return k, err
		}
	}
	most := mostLoad * slices.Max(loads)
	for {
		next := k.locate(most)
		if next == 0 || len(k.Points) >= mostPoints {
			return k, nil
		}
		if err := add(next); err != nil {
			return k, err
		}
	}
}

// locate finds the knee among the points so far: where their isotonic fit first crosses. It returns
// the load to play next, or 0 when the knee is known well enough, or cannot be.
func (k *SeedKnee) locate(most float64) (next float64) {
	var x, y []float64
	for _, p := range k.Points {
		x, y = append(x, p.Load), append(y, p.Attainment)
	}
	fit := stat.Falling(y, nil)
	lowest, highest := x[0], x[len(x)-1]
	k.Load, k.Gap, k.Unreached = 0, 0, false
	i := slices.IndexFunc(fit, func(v float64) bool { return v < sustained })
	switch i {
	case 0:
		if lowest <= leastLoad {
			return 0
		}
		return math.Max(leastLoad, lowest/2)
	case -1:
		k.Load, k.Unreached = highest, true
		if highest >= most {
			return 0
		}
		return math.Min(most, highest*1.5)
	}
	k.Load, _ = stat.Crossing(x, fit, sustained)
	k.Gap = (x[i] - x[i-1]) / k.Load
	if k.Gap <= kneeGap {
		return 0
	}
	return (x[i-1] + x[i]) / 2
}

// rate is the rate offered at the knee, by linear interpolation between the points around it.
func (k *SeedKnee) rate() float64 {
	for i := 1; i < len(k.Points); i++ {
		if a, b := k.Points[i-1], k.Points[i]; k.Load >= a.Load && k.Load <= b.Load {
			return a.Offered + (b.Offered-a.Offered)*(k.Load-a.Load)/(b.Load-a.Load)
		}
	}
	return 0
}

// kneeOf sums up the knees of a policy on single seeds.
func kneeOf(policy string, seeds []SeedKnee) *Knee {
	k := &Knee{Policy: policy, PerSeed: seeds, CI95: Interval{math.NaN(), math.NaN()}}
	var loads, rates []float64
	for _, s := range seeds {
		loads, rates = append(loads, s.Load), append(rates, s.rate())
		switch {
		case s.Load == 0:
			k.Zero++
		case s.Unreached:
			k.Unreached++
		case s.Gap > coarseGap:
			k.Coarse = true
		}
	}
	if len(seeds) == 0 {
		return k
	}
	i := stat.MeanInterval(loads, level)
	k.Load, k.Rate = i.Mean, stat.Mean(rates)
	if len(seeds) > 1 {
		k.CI95 = Interval{math.Max(0, i.Low), i.High}
	}
	return k
}

// values are the knees by seed, NaN where the load was still sustained: a bound is no knee.
func (k *Knee) values() []float64 {
	v := make([]float64, 0, len(k.PerSeed))
	for _, s := range k.PerSeed {
		if s.Unreached {
			v = append(v, math.NaN())
			continue
		}
		v = append(v, s.Load)
	}
	return v
}

// compareKnees is the difference of the knees of two policies on the same seeds, and their ratio.
func compareKnees(a, b *Knee) Comparison {
	c := differ(a.values(), b.values(), 1)
	c.A, c.B, c.Metric = a.Policy, b.Policy, KneeMetric
	if r := KneeRatio(a, b); r.Seeds > 0 {
		c.Relative, c.RelativeCI95 = r.Ratio-1, Interval{r.CI95[0] - 1, r.CI95[1] - 1}
	}
	return c
}

// lowest is the lowest load that was played.
func (k *Knee) lowest() float64 {
	low := math.Inf(1)
	for _, s := range k.PerSeed {
		for _, p := range s.Points {
			low = min(low, p.Load)
		}
	}
	return low
}
