package router

// EpsilonPicker takes the highest score, but with probability Epsilon draws uniformly among all
// candidates, so that every one keeps being tried.
type EpsilonPicker struct {
	Epsilon float64 // 0..1
}

// DefaultEpsilon is the share of exploratory draws where none is given, that of llm-d-router's
// predicted-latency profile.
const DefaultEpsilon = 0.01

// Name implements [Picker].
func (EpsilonPicker) Name() string { return "epsilon-greedy" }

// Pick implements [Picker]. With n candidates, m of them highest, each of these has probability
// (1-eps)/m + eps/n and every other eps/n.
func (p EpsilonPicker) Pick(q *Query, keep []bool, score []float64) (i int, propensity float64) {
	best, ties := highest(keep, score)
	n := 0
	for _, k := range keep {
		if k {
			n++
		}
	}
	if q.Rand.Float64() >= p.Epsilon {
		i = nthAt(keep, score, best, q.Rand.IntN(ties))
	} else {
		i = nth(keep, q.Rand.IntN(n))
	}
	propensity = p.Epsilon / float64(n)
	if score[i] == best {
		propensity += (1 - p.Epsilon) / float64(ties)
	}
	return i, min(propensity, 1)
}

// Chances implements [Drawer].
func (p EpsilonPicker) Chances(keep []bool, score []float64, out []float32) {
	best, ties := highest(keep, score)
	n := 0
	for _, k := range keep {
		if k {
			n++
		}
	}
	for i, k := range keep {
		if !k {
			continue
		}
		out[i] = float32(p.Epsilon / float64(n))
		if score[i] == best {
			out[i] += float32((1 - p.Epsilon) / float64(ties))
		}
	}
}

// Drawn implements [Drawer].
func (EpsilonPicker) Drawn() Reason { return ByExplore }

// nth returns the n-th kept candidate.
func nth(keep []bool, n int) int {
	for i, k := range keep {
		if k {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return -1
}

var _ Drawer = EpsilonPicker{}
