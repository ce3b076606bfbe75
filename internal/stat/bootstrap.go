package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// BlockBootstrap is the percentile interval of a statistic of a series whose neighbours depend on
// each other. Resamples are put together from blocks of consecutive indices that start anywhere,
// wrapping around (circular block bootstrap, Politis and Romano 1992), and cut to n. of computes the
// statistic of the resample with the given indices, which are valid during the call only. With block
// 1 it is the ordinary bootstrap. The Mean of the result is the statistic of the series itself.
func BlockBootstrap(n, block, resamples int, level float64, rng *rand.Rand, of func(index []int) float64) Interval {
	nan := math.NaN()
	if n == 0 || resamples == 0 || !(level > 0 && level < 1) {
		return Interval{Mean: nan, Low: nan, High: nan, N: n}
	}
	block = min(max(block, 1), n)
	index := make([]int, n)
	for i := range index {
		index[i] = i
	}
	whole := of(index)
	values := make([]float64, resamples)
	for r := range values {
		for i := 0; i < n; i += block {
			start := rng.IntN(n)
			for k := range min(block, n-i) {
				index[i+k] = (start + k) % n
			}
		}
		values[r] = of(index)
	}
	if slices.ContainsFunc(values, math.IsNaN) {
		return Interval{Mean: whole, Low: nan, High: nan, N: n}
	}
	slices.Sort(values)
	return Interval{Mean: whole, Low: Quantile(values, (1-level)/2), High: Quantile(values, (1+level)/2), N: n}
}
