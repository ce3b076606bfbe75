package router

// WeightedPicker draws with probability proportional to score, uniformly where all are 0
// (llm-d-router's weighted-random picker).
type WeightedPicker struct{}

// Name implements [Picker].
func (WeightedPicker) Name() string { return "weighted-random" }

// Pick implements [Picker]. The winner has the largest key U^(1/w) (A-Res, Efraimidis and Spirakis
// 2006), which is the smallest of the exponential times -ln(U)/w; for one winner its probability is
// w over the sum.
func (p WeightedPicker) Pick(q *Query, keep []bool, score []float64) (i int, propensity float64) {
	i, first := -1, 0.0
	for j, k := range keep {
		if !k || score[j] <= 0 {
			continue
		}
		if at := q.Rand.ExpFloat64() / score[j]; i < 0 || at < first {
			i, first = j, at
		}
	}
	if i < 0 {
		return MaxPicker{}.Pick(q, keep, score) // all 0: equals
	}
	return i, score[i] / total(keep, score)
}

// Chances implements [Drawer].
func (p WeightedPicker) Chances(keep []bool, score []float64, out []float32) {
	sum, n := total(keep, score), 0
	for _, k := range keep {
		if k {
			n++
		}
	}
	for i, k := range keep {
		switch {
		case !k:
		case sum > 0:
			out[i] = float32(score[i] / sum)
		default:
			out[i] = 1 / float32(n)
		}
	}
}

// Drawn implements [Drawer].
func (WeightedPicker) Drawn() Reason { return ByDraw }

func total(keep []bool, score []float64) float64 {
	sum := 0.0
	for i, k := range keep {
		if k {
			sum += score[i]
		}
	}
	return sum
}

var _ Drawer = WeightedPicker{}
