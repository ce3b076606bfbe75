package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// search minimises loss by pattern search, starting at x, which it changes. Directions are the
// coordinates and, because coefficients make up for each other, as many random ones in every round; where
// a round helped, its whole move is tried once more; when nothing helps the step is halved. Losses of
// simulations are full of small jumps, on which gradients break and this does not. The random
// directions are the same in every search.
func search(x []float64, loss func([]float64) float64) float64 {
	const restarts = 3 // a search from where one ended, with long steps again, often gets further
	s := &pattern{loss: loss, rng: rand.New(rand.NewPCG(0x70617474, 0x65726e))}
	best := s.descend(x, loss(x))
	for range restarts {
		l := s.descend(x, best)
		if l >= best {
			break
		}
		best = l
	}
	return best
}

type pattern struct {
	loss func([]float64) float64
	rng  *rand.Rand
}

// descend searches from x, whose loss is best, until the steps are too short to matter.
func (s *pattern) descend(x []float64, best float64) float64 {
	const (
		first = 0.4  // of the logarithm of a coefficient
		last  = 0.01 // finer differences are below what measurements tell
		most  = 80   // rounds
	)
	step := first
	for range most {
		before := slices.Clone(x)
		l := s.explore(x, best, step)
		if l >= best {
			if step /= 2; step < last {
				break
			}
			continue
		}
		best = l
		further := slices.Clone(x)
		for i := range further {
			further[i] += x[i] - before[i]
		}
		if l := s.loss(further); l < best {
			best = l
			copy(x, further)
		}
	}
	return best
}

// explore moves x along each direction where that lowers the loss, and returns the loss then.
func (s *pattern) explore(x []float64, best, step float64) float64 {
	d := make([]float64, len(x))
	for i := range 2 * len(x) {
		clear(d)
		if i < len(x) {
			d[i] = step
		} else {
			s.turn(d, step)
		}
		for range 2 {
			for j := range x {
				x[j] += d[j]
			}
			l := s.loss(x)
			if l < best {
				best = l
				break
			}
			for j := range x {
				x[j] -= d[j]
				d[j] = -d[j]
			}
		}
	}
	return best
}

// turn makes d a random direction, twice as long as the step.
func (s *pattern) turn(d []float64, step float64) {
	sum := 0.0
	for i := range d {
		d[i] = s.rng.NormFloat64()
		sum += d[i] * d[i]
	}
	for i := range d {
		d[i] *= 2 * step / math.Sqrt(sum)
	}
}
