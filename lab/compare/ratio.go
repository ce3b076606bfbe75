package compare

import (
	"math"

	"github.com/presage-router/presage/internal/stat"
)

// Ratio is how many times the load of B policy A sustains.
type Ratio struct {
	A     string   `json:"a"`
	B     string   `json:"b"`
	Ratio float64  `json:"ratio"` // geometric mean over seeds; 0 where Seeds is
	CI95  Interval `json:"ci95"`  // Student's t of the logarithms
	Seeds int      `json:"seeds"` // on which both have a knee; of 0 there is no ratio
	// Seeds left out: where B, or both, attained less than 90 % at the lowest load, where A alone did,
	// and where the highest load was still sustained.
	Zero      int `json:"zero"`
	Lost      int `json:"lost"`
	Unreached int `json:"unreached"`
}

// KneeRatio compares knees found on the same seeds in the same order.
func KneeRatio(a, b *Knee) Ratio {
	r := Ratio{A: a.Policy, B: b.Policy, CI95: Interval{math.NaN(), math.NaN()}}
	var logs []float64
	for i := range a.PerSeed {
		x, y := &a.PerSeed[i], &b.PerSeed[i]
		switch {
		case y.Load == 0:
			r.Zero++
		case x.Load == 0:
			r.Lost++
		case x.Unreached || y.Unreached:
			r.Unreached++
		default:
			logs = append(logs, math.Log(x.Load/y.Load))
		}
	}
	if r.Seeds = len(logs); r.Seeds == 0 {
		return r
	}
	i := stat.MeanInterval(logs, level)
	r.Ratio = math.Exp(i.Mean)
	if r.Seeds > 1 {
		r.CI95 = Interval{math.Exp(i.Low), math.Exp(i.High)}
	}
	return r
}

// GeometricMean is that of the ratios that have one, and how many these are; 0 of none.
func GeometricMean(ratios []Ratio) (mean float64, n int) {
	var sum float64
	for i := range ratios {
		if ratios[i].Seeds > 0 {
			sum += math.Log(ratios[i].Ratio)
			n++
		}
	}
	if n == 0 {
		return 0, 0
	}
	return math.Exp(sum / float64(n)), n
}
