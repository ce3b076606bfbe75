package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate with its confidence interval.
type Interval struct {
	Mean, Low, High float64
	N               int // values behind it
}

// Excludes reports whether the interval lies on one side of v. An interval that could not be computed
// excludes nothing.
func (i Interval) Excludes(v float64) bool { return i.Low > v || i.High < v }

// MeanInterval is the mean with Student's t interval at the given level, mean ± t·s/√n with n-1
// degrees of freedom. With fewer than two values the bounds are NaN.
func MeanInterval(x []float64, level float64) Interval {
	n := len(x)
	m := Mean(x)
	half := math.NaN()
	if n >= 2 {
		half = StudentT(level, float64(n-1)) * SD(x) / math.Sqrt(float64(n))
	}
	return Interval{Mean: m, Low: m - half, High: m + half, N: n}
}

// StudentT is the half-width factor of a two-sided interval: the (1+level)/2-quantile of Student's t
// distribution with the given degrees of freedom. NaN for impossible arguments.
func StudentT(level, free float64) float64 {
	if !(level > 0 && level < 1) || !(free > 0) {
		return math.NaN()
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile((1 + level) / 2)
}

// Paired is what pairs of measurements say about their difference.
type Paired struct {
	Interval         // of the mean of a-b
	P        float64 // two-sided p-value of the t test that the mean difference is 0
	Wins     int     // pairs with a > b
	Losses   int     // pairs with a < b
}

// PairedDifference compares a[i] with b[i], made under equal conditions (one seed, one block).
// It panics if the lengths differ.
func PairedDifference(a, b []float64, level float64) Paired {
	if len(a) != len(b) {
		panic("stat: pairs of unequal length")
	}
	d := make([]float64, len(a))
	var p Paired
	for i := range a {
		d[i] = a[i] - b[i]
		switch {
		case d[i] > 0:
			p.Wins++
		case d[i] < 0:
			p.Losses++
		}
	}
	p.Interval = MeanInterval(d, level)
	p.P = pValue(p.Mean, SD(d), len(d))
	return p
}

// pValue is the two-sided p-value of t = mean/(sd/√n) with n-1 degrees of freedom.
func pValue(mean, sd float64, n int) float64 {
	switch {
	case n < 2 || math.IsNaN(mean) || math.IsNaN(sd):
		return math.NaN()
	case sd == 0 && mean == 0:
		return 1
	case sd == 0:
		return 0
	}
	t := mean / (sd / math.Sqrt(float64(n)))
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Survival(math.Abs(t))
}

// PairsNeeded is the number of pairs that would show a mean difference d between values whose
// differences have the standard deviation sd, with the given power at the given level, by Student's
// test at that number: the least n with (t_{(1+level)/2} + t_power)·sd/√n <= |d|, of n-1 degrees of
// freedom. Power is above 1/2. NaN where d is 0.
func PairsNeeded(d, sd, level, power float64) float64 {
	z := distuv.UnitNormal.Quantile((1+level)/2) + distuv.UnitNormal.Quantile(power)
	if d == 0 || !(power > .5) {
		return math.NaN()
	}
	n := math.Ceil(z * z * sd * sd / (d * d)) // too few by what the estimate of sd costs
	for n = max(n, 2); n < 1000; n++ {
		if (StudentT(level, n-1)+StudentT(2*power-1, n-1))*sd/math.Sqrt(n) <= math.Abs(d) {
			break
		}
	}
	return n
}
