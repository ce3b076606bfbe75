package conformal

import (
	"fmt"
	"math"
)

// State is what [Bands] have learned, to be written down: the errors kept, oldest first, and the
// corrections of the levels.
type State struct {
	All    []float64          `json:"all"`
	Strata [Strata][]float64  `json:"strata"`
	Raise  [Strata][2]float64 `json:"raise"` // of P90 and P99
}

// State returns a copy of what was learned.
func (b *Bands) State() State {
	s := State{All: b.all.ordered()}
	for i := range b.strata {
		s.Strata[i] = b.strata[i].ordered()
		s.Raise[i] = [2]float64{b.raise[i].p90, b.raise[i].p99}
	}
	return s
}

// Restore makes the bands know what a state says. Errors and corrections must be within the bounds
// that learning keeps; otherwise b is unchanged.
func (b *Bands) Restore(s State) error {
	var out Bands
	if err := out.all.fill("all", s.All, overall); err != nil {
		return err
	}
	for i := range s.Strata {
		if err := out.strata[i].fill(fmt.Sprintf("strata[%d]", i), s.Strata[i], perStratum); err != nil {
			return err
		}
		r := s.Raise[i]
		if !(r[0] >= -3*limit90 && r[0] <= limit90) || !(r[1] >= -3*limit99 && r[1] <= limit99) {
			return fmt.Errorf("raise[%d]: %v: beyond what learning reaches", i, r)
		}
		out.raise[i] = steer{p90: r[0], p99: r[1]}
	}
	*b = out
	return nil
}

func (r *ring) ordered() []float64 {
	out := make([]float64, 0, len(r.times))
	return append(append(out, r.times[r.next:]...), r.times[:r.next]...)
}

func (r *ring) fill(name string, errors []float64, size int) error {
	if len(errors) > size {
		return fmt.Errorf("%s: %d errors, more than %d", name, len(errors), size)
	}
	for i, z := range errors {
		if !(math.Abs(z) <= bound) {
			return fmt.Errorf("%s[%d]: %v: not within %v of zero", name, i, z, bound)
		}
		r.push(z, size)
	}
	return nil
}
