package calibrate

import "math"

// regression finds non-negative coefficients b with x·b near y, by relative error: it minimises
// sum |x·b/y - 1| through iteratively reweighted least squares, each solved by coordinate descent on
// the normal equations. Absolute errors, because recordings hold stalls that squares would follow.
// Rows with y below a picosecond do not count.
func regression(x [][]float64, y []float64) []float64 {
	if len(x) == 0 {
		return nil
	}
	p := len(x[0])
	b := make([]float64, p)
	w := make([]float64, len(x))
	for i := range w {
		w[i] = 1
	}
	const (
		reweightings = 12
		shortest     = 1e-6  // us
		floor        = 0.005 // relative errors below count as this, or a perfect row would count without bound
	)
	for range reweightings {
		gram, moment := make([]float64, p*p), make([]float64, p)
		for i, row := range x {
			if y[i] < shortest {
				continue
			}
			v := w[i] / (y[i] * y[i])
			for j, xj := range row {
				if xj == 0 {
					continue
				}
				moment[j] += v * xj * y[i]
				for k := range row[:j+1] {
					gram[j*p+k] += v * xj * row[k]
				}
			}
		}
		descend(gram, moment, b)
		for i, row := range x {
			w[i] = 1 / max(floor, math.Abs(dot(row, b)/max(y[i], shortest)-1))
		}
	}
	return b
}

// descend minimises b·G·b/2 - m·b over b >= 0, for a symmetric G of which the lower half is given.
func descend(gram, m, b []float64) {
	p := len(b)
	at := func(i, j int) float64 {
		if i < j {
			i, j = j, i
		}
		return gram[i*p+j]
	}
	const (
		sweeps  = 3000
		settled = 1e-10
	)
	for range sweeps {
		moved := 0.0
		for j := range b {
			d := at(j, j)
			if d <= 0 {
				continue
			}
			g := m[j]
			for k := range b {
				g -= at(j, k) * b[k]
			}
			next := max(0, b[j]+g/d)
			moved = max(moved, math.Abs(next-b[j])*math.Sqrt(d))
			b[j] = next
		}
		if moved < settled*math.Sqrt(float64(p)) {
			return
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}
