package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSequenceAgainstTheMartingale: the closed form of the interval is where the martingale crosses.
func TestSequenceAgainstTheMartingale(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		n := 7 + rng.IntN(60)
		x := make([]float64, n)
		var s Sequence
		for i := range x {
			x[i] = 5 + 3*rng.NormFloat64()
			s.Add(x[i])
		}
		level := []float64{.8, .95, .99}[rng.IntN(3)]
		in := s.Interval(level)
		martingale := func(mu float64) float64 {
			sum, square := 0.0, 0.0
			for _, v := range x {
				sum += v - mu
				square += (v - mu) * (v - mu)
			}
			f := float64(n)
			return math.Sqrt(spread/(f+spread)) * math.Pow(square/(square-sum*sum/(f+spread)), f/2)
		}
		if math.IsInf(in.Low, 0) {
			if m := martingale(1e9); m > 1/(1-level) {
				t.Fatalf("n %d, level %v: infinite, but M is %v far away", n, level, m)
			}
			continue
		}
		for _, mu := range []float64{in.Low, in.High} {
			if m := martingale(mu); math.Abs(m*(1-level)-1) > 1e-6 {
				t.Fatalf("n %d, level %v: M = %v at a bound", n, level, m)
			}
		}
		near(t, "mean", in.Mean, Mean(x))
		near(t, "sd", s.SD(), SD(x))
	}
}

// TestSequenceHoldsAtAnyTime: of streams that are read after every value, at most one in twenty ever
// excludes the truth, whatever the scale; a t interval read as often does so in far more.
func TestSequenceHoldsAtAnyTime(t *testing.T) {
	const streams, length = 2000, 200
	wrong, peeked := 0, 0
	rng := rand.New(rand.NewPCG(11, 3))
	var factor [length + 1]float64
	for n := 7; n <= length; n++ {
		factor[n] = StudentT(.95, float64(n-1)) / math.Sqrt(float64(n))
	}
	for range streams {
		var s Sequence
		mu, sd := rng.NormFloat64()*100, math.Exp(3*rng.NormFloat64())
		out, outT := false, false
		for n := 1; n <= length; n++ {
			s.Add(mu + sd*rng.NormFloat64())
			out = out || s.Interval(.95).Excludes(mu)
			if n >= 7 {
				outT = outT || math.Abs(s.mean-mu) > factor[n]*s.SD()
			}
		}
		if out {
			wrong++
		}
		if outT {
			peeked++
		}
	}
	t.Logf("excluded the truth at any look: always-valid %.2f %%, t interval %.1f %%", 100*float64(wrong)/streams, 100*float64(peeked)/streams)
	if wrong > streams/20 || wrong < streams/1000 || peeked < streams/5 {
		t.Errorf("always-valid %d, t interval %d of %d", wrong, peeked, streams)
	}
}

// TestPowerAsPromised: as many values as are said to be needed find the mean as often as is said.
func TestPowerAsPromised(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	for _, d := range []float64{.3, .5, .8, 1.2} {
		fixed, anyTime := PairsNeeded(d, 1, .95, .8), SequenceNeeded(d, 1, .95, .8)
		foundFixed, foundAny := 0, 0
		const runs = 4000
		for range runs {
			var s Sequence
			var x []float64
			for range int(anyTime) {
				v := d + rng.NormFloat64()
				s.Add(v)
				if len(x) < int(fixed) {
					x = append(x, v)
				}
			}
			if MeanInterval(x, .95).Excludes(0) {
				foundFixed++
			}
			if s.Interval(.95).Excludes(0) {
				foundAny++
			}
		}
		t.Logf("mean of %.1f sd: %v values at a fixed end find it in %.1f %%, %v at any time in %.1f %%", d,
			fixed, 100*float64(foundFixed)/runs, anyTime, 100*float64(foundAny)/runs)
		for _, found := range []int{foundFixed, foundAny} {
			if share := float64(found) / runs; share < .77 || share > .88 {
				t.Errorf("mean of %v sd: found in a share of %.3f, promised .8", d, share)
			}
		}
	}
	for _, v := range []float64{SequenceNeeded(0, 1, .95, .8), SequenceNeeded(1e-9, 1, .95, .8), SequenceNeeded(math.NaN(), 1, .95, .8)} {
		if !math.IsNaN(v) {
			t.Errorf("%v needed for what cannot be found", v)
		}
	}
	var s Sequence
	if in := s.Interval(.95); !math.IsNaN(in.Mean) || in.Excludes(0) {
		t.Errorf("of nothing: %+v", in)
	}
	s.Add(3)
	if in := s.Interval(.95); in.Mean != 3 || !math.IsInf(in.Low, -1) || in.Excludes(0) {
		t.Errorf("of one value: %+v", in)
	}
}
