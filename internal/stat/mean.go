package stat

import "math"

// Mean is Σx/n.
func Mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Variance is the unbiased Σ(x-mean)²/(n-1); NaN for fewer than two.
func Variance(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	m, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(x)-1)
}

// SD is the square root of [Variance].
func SD(x []float64) float64 { return math.Sqrt(Variance(x)) }

// CV is the coefficient of variation, σ/mean with the population's σ (divisor n), so that n equal
// loads give 0 and all load on one of n gives √(n-1). NaN where the mean is 0.
func CV(x []float64) float64 {
	m, sum := Mean(x), 0.0
	if len(x) == 0 || m == 0 {
		return math.NaN()
	}
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum/float64(len(x))) / math.Abs(m)
}

// Jain is the fairness index (Σx)²/(nΣx²): 1 for equal shares, 1/n when one has all.
// Jain, Chiu, Hawe, DEC-TR-301 (1984).
func Jain(x []float64) float64 {
	sum, square := 0.0, 0.0
	for _, v := range x {
		sum += v
		square += v * v
	}
	return sum * sum / (float64(len(x)) * square)
}

// WeightedMean is Σwx/Σw.
func WeightedMean(x, w []float64) float64 {
	sum, total := 0.0, 0.0
	for i, v := range x {
		sum += w[i] * v
		total += w[i]
	}
	return sum / total
}

// WeightedVariance is Σw(x-mean)²/(Σw - Σw²/Σw), unbiased for weights that say how reliable a value
// is; with equal weights it is [Variance].
func WeightedVariance(x, w []float64) float64 {
	m := WeightedMean(x, w)
	sum, total, square := 0.0, 0.0, 0.0
	for i, v := range x {
		sum += w[i] * (v - m) * (v - m)
		total += w[i]
		square += w[i] * w[i]
	}
	free := total - square/total
	if !(free > 1e-12*total) {
		return math.NaN()
	}
	return sum / free
}

// EffectiveSize is (Σw)²/Σw², the number of equally weighted draws that weighted ones are worth.
func EffectiveSize(w []float64) float64 {
	return Jain(w) * float64(len(w))
}
