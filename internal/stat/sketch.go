package stat

import "math"

const (
	sketchError = 0.005 // relative
	sketchLow   = 1e-9  // values below count as 0
	sketchHigh  = 1e9   // values above count as this
)

// Sketch estimates quantiles of a stream of values from 0 up in constant memory (about 33 KB), with a
// relative error of at most 0.5 % between 1e-9 and 1e9: counts in buckets whose bounds grow by a constant
// factor γ, the estimate being 2γ^i/(1+γ) (DDSketch, Masson et al. 2019). The zero value is empty.
type Sketch struct {
	buckets []uint64
	zero    uint64
	n       uint64
	sum     float64
	most    float64
}

// gamma is the ratio of the bounds of one bucket, (1+ε)/(1-ε).
const gamma = (1 + sketchError) / (1 - sketchError)

// Add counts a value. Negative values count as 0, NaN is ignored.
func (s *Sketch) Add(v float64) {
	if math.IsNaN(v) {
		return
	}
	v = min(max(v, 0), sketchHigh)
	s.n++
	s.sum += v
	s.most = max(s.most, v)
	if v < sketchLow {
		s.zero++
		return
	}
	if s.buckets == nil {
		s.buckets = make([]uint64, bucketOf(sketchHigh)+1)
	}
	s.buckets[bucketOf(v)]++
}

func bucketOf(v float64) int { return int(math.Ceil(math.Log(v/sketchLow) / math.Log(gamma))) }

// N is the number of values counted.
func (s *Sketch) N() uint64 { return s.n }

// Mean is the exact mean of the values, as clipped.
func (s *Sketch) Mean() float64 { return s.sum / float64(s.n) }

// Max is the largest value, as clipped; NaN of an empty sketch.
func (s *Sketch) Max() float64 {
	if s.n == 0 {
		return math.NaN()
	}
	return s.most
}

// Quantile estimates the q-quantile: the value of rank ⌈q·n⌉.
func (s *Sketch) Quantile(q float64) float64 {
	if s.n == 0 || math.IsNaN(q) || q < 0 || q > 1 {
		return math.NaN()
	}
	rank := uint64(max(1, math.Ceil(q*float64(s.n))))
	if rank <= s.zero {
		return 0
	}
	seen := s.zero
	for i, c := range s.buckets {
		if seen += c; seen >= rank {
			return min(s.most, 2*sketchLow*math.Pow(gamma, float64(i))/(1+gamma))
		}
	}
	return s.most
}

// Merge adds the values of another sketch.
func (s *Sketch) Merge(o *Sketch) {
	if s.buckets == nil && o.buckets != nil {
		s.buckets = make([]uint64, len(o.buckets))
	}
	for i, c := range o.buckets {
		s.buckets[i] += c
	}
	s.zero, s.n, s.sum, s.most = s.zero+o.zero, s.n+o.n, s.sum+o.sum, max(s.most, o.most)
}
