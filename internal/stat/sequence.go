package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// spread is c² of a [Sequence]: the ratio mean/σ of the alternatives that it looks for is drawn from
// N(0, 1/c²). It moves no coverage, only where intervals are narrowest: at about 24 values for 3.
const spread = 3

// Sequence is the mean of a stream of values with an interval that may be read after any number of
// them, and be read again and again: the probability that any of its intervals ever excludes the
// mean is at most 1-level. It is the confidence sequence of the t-test with a Gaussian mixture over
// the right Haar measure of σ (Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for
// Gaussian means with unknown variance", Sequential Analysis 2025; the mixture is Lai's, Annals of
// Statistics 1976): with n values, S = Σ(x-μ) and V = Σ(x-μ)²,
//
//	M = √(c²/(n+c²)) · (V / (V - S²/(n+c²)))^(n/2)
//
// is a martingale of mean 1 for the true μ and any σ, and the interval is where M < 1/(1-level).
// That holds exactly, from the second value on, for independent Gaussian values; sums over blocks
// come near to it. The zero value is empty.
type Sequence struct {
	n            int
	mean, square float64
}

// Add takes a value in. NaN makes the sequence NaN.
func (s *Sequence) Add(x float64) {
	s.n++
	d := x - s.mean
	s.mean += d / float64(s.n)
	s.square += d * (x - s.mean)
}

// N is the number of values.
func (s *Sequence) N() int { return s.n }

// SD is the standard deviation of the values; NaN for fewer than two.
func (s *Sequence) SD() float64 {
	if s.n < 2 {
		return math.NaN()
	}
	return math.Sqrt(s.square / float64(s.n-1))
}

// Interval is the mean and its always-valid interval. Of few values it is infinite: at a level of .95
// up to 6. Without values all is NaN.
func (s *Sequence) Interval(level float64) Interval {
	nan := math.NaN()
	if s.n == 0 {
		return Interval{Mean: nan, Low: nan, High: nan}
	}
	half := SequenceWidth(s.n, level)
	if !math.IsInf(half, 0) {
		half *= s.SD()
	}
	return Interval{Mean: s.mean, Low: s.mean - half, High: s.mean + half, N: s.n}
}

// SequenceWidth is the half width of a [Sequence]'s interval after n values, in their standard
// deviations; +Inf while there is none.
func SequenceWidth(n int, level float64) float64 {
	if n < 1 || !(level > 0 && level < 1) {
		return math.NaN()
	}
	// M < 1/α is y·(1 - k·c²/(n+c²)) < (k-1)·s² with y = (mean-μ)², s² = Σ(x-mean)²/n and k as below.
	f := float64(n)
	k := math.Pow(math.Sqrt((f+spread)/spread)/(1-level), 2/f)
	room := 1 - k*spread/(f+spread)
	if n < 2 || room <= 0 {
		return math.Inf(1)
	}
	return math.Sqrt((k - 1) / room * (f - 1) / f)
}

// SequenceNeeded is the number of values, with standard deviation sd, after which the interval of a
// [Sequence] excludes 0 with the given power where their mean is d: the least n with
// width(n)·sd + z_power·sd/√n <= |d|. NaN where d is 0 or more than a million would be needed.
func SequenceNeeded(d, sd, level, power float64) float64 {
	z := distuv.UnitNormal.Quantile(power)
	enough := func(n int) bool {
		return sd*(SequenceWidth(n, level)+z/math.Sqrt(float64(n))) <= math.Abs(d)
	}
	const most = 1 << 20
	if d == 0 || !enough(most) {
		return math.NaN()
	}
	low, high := 1, most // not enough, enough
	for high-low > 1 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return float64(high)
}
