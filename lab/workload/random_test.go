package workload

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// within fails unless got is want, give or take err.
func within(t *testing.T, what string, got, want, err float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > err {
		t.Errorf("%s = %v, want %v +- %v", what, got, want, err)
	}
}

// distance of an empirical distribution from a continuous one: Kolmogorov and Smirnov's.
func kolmogorov(x []float64, cdf func(float64) float64) float64 {
	slices.Sort(x)
	worst := 0.0
	for i, v := range x {
		f := cdf(v)
		worst = max(worst, math.Abs(f-float64(i)/float64(len(x))), math.Abs(f-float64(i+1)/float64(len(x))))
	}
	return worst
}

// Each continuous distribution against gonum's, with 20,000 draws of a fixed seed: the critical value
// at 1 in 1,000 is 1.95/sqrt(n).
func TestDistributions(t *testing.T) {
	const n = 20000
	critical := 1.95 / math.Sqrt(n)
	rng := stream(1, "test")
	draw := func(f func() float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = f()
		}
		return x
	}
	for _, shape := range []float64{.1, .5, 1, 3.7, 40} {
		d := kolmogorov(draw(func() float64 { return gamma(rng, shape) }), distuv.Gamma{Alpha: shape, Beta: 1}.CDF)
		within(t, "gamma", d, 0, critical)
	}
	sample := func(d Dist) []float64 { return draw(func() float64 { return d.Sample(rng) }) }
	within(t, "uniform", kolmogorov(sample(Dist{Kind: "uniform", A: 2, B: 5}), distuv.Uniform{Min: 2, Max: 5}.CDF), 0, critical)
	within(t, "loguniform", kolmogorov(sample(Dist{Kind: "loguniform", A: 2, B: 50}), func(x float64) float64 { return math.Log(x/2) / math.Log(25) }), 0, critical)
	within(t, "normal", kolmogorov(sample(Dist{Kind: "normal", A: 50, B: 5}), distuv.Normal{Mu: 50, Sigma: 5}.CDF), 0, critical)
	within(t, "lognormal", kolmogorov(sample(Dist{Kind: "lognormal", A: 729, B: 1.5}), distuv.LogNormal{Mu: math.Log(729) - 1.125, Sigma: 1.5}.CDF), 0, critical)
	x := sample(Dist{Kind: "geometric", A: 12})
	within(t, "geometric mean", stat.Mean(x, nil), 12, 4*math.Sqrt(132./n))
	one := 0.0
	for _, v := range x {
		if v == 1 {
			one++
		}
	}
	within(t, "geometric P(1)", one/n, 1./12, 4*math.Sqrt(1./12/n))
	q := Dist{Kind: "quantiles", P: []float64{.1, .5, .9, .99}, Q: []float64{10, 20, 80, 800}}
	x = sample(q)
	slices.Sort(x)
	for i, p := range q.P {
		within(t, "quantile", stat.Quantile(p, stat.Empirical, x, nil), q.Q[i], .06*q.Q[i])
	}
	if x[0] != 10 || x[n-1] != 800 {
		t.Errorf("ends %v and %v", x[0], x[n-1])
	}
	q = Dist{Kind: "quantiles", P: []float64{0, 1}, Q: []float64{0, 10}}
	within(t, "linear from 0", kolmogorov(sample(q), distuv.Uniform{Min: 0, Max: 10}.CDF), 0, critical)
}

func TestDistEdges(t *testing.T) {
	rng := stream(1, "test")
	for _, c := range []struct {
		d    Dist
		want int
	}{
		{Dist{Kind: "fixed", A: 1200}, 1200}, {Dist{Kind: "geometric", A: 1}, 1}, {Dist{Kind: "normal", A: -50, B: 1}, 1},
		{Dist{Kind: "lognormal", A: 1e6, B: .1, Max: 4000}, 4000}, {Dist{Kind: "uniform", A: 1, B: 2, Min: 7, Max: 9}, 7}, {Dist{Kind: "fixed", A: 2.6}, 3},
	} {
		for range 50 {
			if got := c.d.Tokens(rng); got != c.want {
				t.Fatalf("%+v gives %d, want %d", c.d, got, c.want)
			}
		}
	}
}

func TestPicks(t *testing.T) {
	const n = 60000
	count := func(p Pick, things int) []float64 {
		k := newPicker(p, things, stream(2, "pick"))
		out := make([]float64, things)
		for range n {
			out[k.next()]++
		}
		return out
	}
	for i, c := range count(Pick{Kind: "uniform"}, 6) {
		within(t, "uniform", c, n/6, 4*math.Sqrt(n/6))
		if i > 5 {
			t.Fatal("too many")
		}
	}
	for _, c := range count(Pick{Kind: "cycle"}, 6) {
		within(t, "cycle", c, n/6, 0)
	}
	sum := 0.0
	for k := 1; k <= 64; k++ {
		sum += math.Pow(float64(k), -1.1)
	}
	for i, c := range count(Pick{Kind: "zipf", S: 1.1}, 64) {
		want := n * math.Pow(float64(i+1), -1.1) / sum
		within(t, "zipf", c, want, 4*math.Sqrt(want))
	}
}

func TestStreamsAreIndependent(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(50) {
		for _, label := range [][]string{nil, {""}, {"", ""}, {"a"}, {"a", "b"}, {"ab"}, {"b", "a"}} {
			v := stream(seed, label...).Uint64()
			if seen[v] {
				t.Fatalf("stream %d %q begins like another", seed, label)
			}
			seen[v] = true
			if v != stream(seed, label...).Uint64() {
				t.Fatal("a stream is not a function of seed and label")
			}
		}
	}
}
