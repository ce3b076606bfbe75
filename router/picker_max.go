package router

// MaxPicker takes the highest score, a random one among exact equals.
type MaxPicker struct{}

// Name implements [Picker].
func (MaxPicker) Name() string { return "max" }

// Pick implements [Picker]: the propensity is one over the number of equals.
func (MaxPicker) Pick(q *Query, keep []bool, score []float64) (i int, propensity float64) {
	best, ties := highest(keep, score)
	return nthAt(keep, score, best, q.Rand.IntN(ties)), 1 / float64(ties)
}

// highest returns the best kept score and how many bear it.
func highest(keep []bool, score []float64) (best float64, ties int) {
	for i, k := range keep {
		switch {
		case !k:
		case ties == 0 || score[i] > best:
			best, ties = score[i], 1
		case score[i] == best:
			ties++
		}
	}
	return best, ties
}

// nthAt returns the n-th kept candidate whose score is exactly v.
func nthAt(keep []bool, score []float64, v float64, n int) int {
	for i, k := range keep {
		if k && score[i] == v {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return -1
}

var _ Picker = MaxPicker{}
