package engine

import (
	"fmt"
	"math"
)

// Pass is one measured engine iteration.
type Pass struct {
	Prefills      int     // requests with a prefill chunk
	PrefillTokens int     // of all chunks
	PrefillKV     int     // tokens before the chunks, summed
	PrefillVar    float64 // variance of the chunks' lengths
	Decodes       int     // decoding requests
	DecodeKV      int     // their context tokens, summed
	Time          float64 // microseconds
}

// Fit finds the coefficients whose step times come nearest to measured iterations, in the mean of the
// relative error's Huber loss, none below zero. What cannot be told apart in iterations goes together:
// the knots take in constant overheads, LM head and cost per request, so a fitted engine wants a
// [Profile] without them. Names and KV capacity are left for the caller.
func Fit(passes []Pass) (Coefs, error) {
	tokens := 0
	for i := range passes {
		p := &passes[i]
		if !p.possible() {
			return Coefs{}, fmt.Errorf("pass %d: impossible: %+v", i, *p)
		}
		tokens = max(tokens, p.PrefillTokens+p.Decodes)
	}
	if len(passes) < minPasses {
		return Coefs{}, fmt.Errorf("%d passes: at least %d are needed", len(passes), minPasses)
	}
	f := newFit(tokens)
	for i := range passes {
		f.rows = append(f.rows, f.row(&passes[i]))
		f.times = append(f.times, passes[i].Time)
	}
	f.solve()
	n := len(f.knots)
	c := Coefs{
		Knots: f.knots, G: f.x[:n:n], PrefillFix: f.x[n], PrefillLin: f.x[n+1], PrefillQuad: f.x[n+2], DecodeKV: f.x[n+3],
	}
	for i := range c.G {
		c.G[i] = max(c.G[i], 1)
	}
	return c, nil
}

const minPasses = 100

func (p *Pass) possible() bool {
	return p.PrefillTokens+p.Decodes > 0 && p.Prefills >= 0 && p.PrefillTokens >= p.Prefills && p.PrefillKV >= 0 &&
		p.Decodes >= 0 && p.DecodeKV >= 0 && within(p.Time, 1, 1e9) && within(p.PrefillVar, 0, 1e12)
}

// PassTime is the time of an iteration by the coefficients alone, in microseconds: what [Fit] fits.
func (c *Coefs) PassTime(p *Pass) float64 {
	f := fitting{knots: c.Knots}
	row := f.row(p)
	n := len(c.Knots)
	t := row[n]*c.PrefillFix + row[n+1]*c.PrefillLin + row[n+2]*c.PrefillQuad + row[n+3]*c.DecodeKV
	for i, g := range c.G {
		t += row[i] * g
	}
	return t
}

// fitting is a weighted least-squares problem with nonnegative unknowns: G at the knots, then Pfix,
// Plin, Pquad and Dkv.
type fitting struct {
	knots []float64
	rows  [][]float64
	times []float64
	x     []float64
}

func newFit(tokens int) *fitting {
	f := &fitting{}
	for _, k := range []float64{1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384, 32768, 65536} {
		f.knots = append(f.knots, k)
		if k >= float64(tokens) && len(f.knots) > 1 {
			break
		}
	}
	return f
}

// row is how an iteration's time depends on the unknowns.
func (f *fitting) row(p *Pass) []float64 {
	n := len(f.knots)
	row := make([]float64, n+4)
	t := float64(p.PrefillTokens + p.Decodes)
	k := 0
	for k+2 < n && f.knots[k+1] <= t {
		k++
	}
	w := max(0, (t-f.knots[k])/(f.knots[k+1]-f.knots[k]))
	row[k], row[k+1] = 1-w, w
	if p.Prefills > 0 {
		q := float64(p.PrefillTokens) / float64(p.Prefills)
		row[n] = 1
		row[n+1] = float64(p.PrefillTokens)
		row[n+2] = q*float64(p.PrefillKV) + float64(p.Prefills)*(q*q+p.PrefillVar)/2
	}
	row[n+3] = float64(p.DecodeKV)
	return row
}

// solve minimises by reweighting: Huber's weights on the relative error of the solution before.
func (f *fitting) solve() {
	n := len(f.rows[0])
	f.x = make([]float64, n)
	weight := make([]float64, len(f.rows))
	for i := range weight {
		weight[i] = 1
	}
	for range 10 {
		f.descend(weight)
		for i, row := range f.rows {
			e := math.Abs(dot(row, f.x)/f.times[i] - 1)
			weight[i] = min(1, huber/max(e, 1e-12))
		}
	}
}

const huber = 0.03 // relative error beyond which a pass pulls no harder

// descend solves the weighted problem by coordinate descent on its normal equations.
func (f *fitting) descend(weight []float64) {
	n := len(f.x)
	scale := make([]float64, n) // of columns, so that all unknowns are of one size
	a, b := make([]float64, n*n), make([]float64, n)
	for _, row := range f.rows {
		for i, v := range row {
			scale[i] = max(scale[i], v)
		}
	}
	for i := range scale {
		if scale[i] == 0 {
			scale[i] = 1
		}
	}
	for r, row := range f.rows {
		w := weight[r] / (f.times[r] * f.times[r])
		for i, v := range row {
			if v == 0 {
				continue
			}
			b[i] += w * v / scale[i] * f.times[r]
			for j, u := range row {
				if u != 0 {
					a[i*n+j] += w * v * u / (scale[i] * scale[j])
				}
			}
		}
	}
	f.smooth(a, n)
	y := make([]float64, n)
	for i := range y {
		y[i] = f.x[i] * scale[i]
	}
	for range 1000 {
		moved := 0.0
		for i := range y {
			d := a[i*n+i]
			if d == 0 {
				continue
			}
			v := max(0, y[i]+(b[i]-dot(a[i*n:(i+1)*n], y))/d)
			moved = max(moved, math.Abs(v-y[i])/(math.Abs(v)+1))
			y[i] = v
		}
		if moved < 1e-9 {
			break
		}
	}
	for i := range y {
		f.x[i] = y[i] / scale[i]
	}
}

// smooth adds a slight preference for straight lines through neighbouring knots, which decides where
// there are no measurements.
func (f *fitting) smooth(a []float64, n int) {
	total := 0.0
	for i := range n {
		total += a[i*n+i]
	}
	for k := 1; k+1 < len(f.knots); k++ {
		w := (f.knots[k] - f.knots[k-1]) / (f.knots[k+1] - f.knots[k-1])
		c := [3]float64{1 - w, -1, w}
		for i := range c {
			for j := range c {
				a[(k-1+i)*n+k-1+j] += 1e-6 * total * c[i] * c[j]
			}
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}
