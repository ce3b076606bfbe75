package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// Values of numpy.quantile (default method, type 7).
func TestQuantileType7(t *testing.T) {
	x := []float64{1, 2, 4, 8, 16}
	for q, want := range map[float64]float64{0: 1, .1: 1.4, .25: 2, .3: 2.4, .5: 4, .9: 12.8, .99: 15.68, 1: 16} {
		near(t, "quantile", Quantile(x, q), want)
	}
	near(t, "median", Median([]float64{3, 1, 2, 10}), 2.5)
	near(t, "single", Quantile([]float64{7}, .3), 7)
	if q := Quantiles([]float64{2, 1}, 0, .5, 1); !slices.Equal(q, []float64{1, 1.5, 2}) {
		t.Errorf("quantiles = %v", q)
	}
}

func TestQuantileBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 50).Draw(t, "x")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		v := Quantiles(x, q)[0]
		below := 0
		for _, e := range x {
			if e <= v {
				below++
			}
		}
		// At least ⌊(n-1)q⌋+1 values are at or below a type-7 quantile.
		if want := int(float64(len(x)-1)*q) + 1; below < want {
			t.Fatalf("%d of %v at or below %v, want %d", below, x, v, want)
		}
	})
}

func TestNoDataIsNaN(t *testing.T) {
	nan := math.NaN()
	for name, v := range map[string]float64{
		"quantile": Quantile(nil, .5), "q>1": Quantile([]float64{1}, 1.1), "q NaN": Quantile([]float64{1}, nan), "median": Median(nil),
		"median of NaN": Median([]float64{nan, 1, 2}), "mean": Mean(nil), "variance": Variance([]float64{1}), "cv": CV(nil),
		"cv around 0": CV([]float64{-1, 1}), "jain": Jain(nil), "jain of zeros": Jain([]float64{0, 0}), "weighted": WeightedMean(nil, nil),
		"no weight": WeightedQuantile([]float64{1}, []float64{0}, .5), "weighted NaN": WeightedQuantile([]float64{nan}, []float64{1}, .5),
		"weighted variance": WeightedVariance([]float64{1}, []float64{1}), "one value": MeanInterval([]float64{1}, .95).Low,
		"level": StudentT(1, 5), "freedom": StudentT(.9, 0), "mape": MAPE(nil, nil), "sketch": new(Sketch).Quantile(.5), "max": new(Sketch).Max(),
		"pairs": PairsNeeded(0, 1, .95, .8), "bootstrap": BlockBootstrap(0, 1, 10, .9, nil, nil).Mean,
	} {
		if !math.IsNaN(v) {
			t.Errorf("%s = %v, want NaN", name, v)
		}
	}
	if (Interval{Low: nan, High: nan}).Excludes(0) {
		t.Error("an unknown interval excludes 0")
	}
}

func TestMoments(t *testing.T) {
	x, w := []float64{2, 4, 4, 4, 5, 5, 7, 9}, []float64{1, 2, 3, 1, 1, 4, 1, 2}
	near(t, "mean", Mean(x), 5)
	near(t, "variance", Variance(x), 32./7)
	near(t, "sd", SD(x), math.Sqrt(32./7))
	near(t, "cv", CV(x), 2./5)
	near(t, "cv of one busy of four", CV([]float64{0, 8, 0, 0}), math.Sqrt(3))
	near(t, "jain equal", Jain([]float64{3, 3, 3}), 1)
	near(t, "jain one of four", Jain([]float64{0, 8, 0, 0}), .25)
	near(t, "jain", Jain([]float64{1, 2, 3}), 36./(3*14))
	near(t, "weighted mean", WeightedMean(x, w), gonum.Mean(x, w))
	near(t, "effective size", EffectiveSize([]float64{1, 1, 2}), 16./6)
	ones := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	near(t, "weighted variance, equal weights", WeightedVariance(x, ones), Variance(x))
	near(t, "weighted variance, scaled weights", WeightedVariance(x, []float64{3, 3, 3, 3, 3, 3, 3, 3}), Variance(x))
}

func TestWeightedQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 12).Draw(t, "x")
		w := make([]float64, len(x))
		var repeated []float64 // brute force: whole weights as repetitions
		for i := range w {
			n := rapid.IntRange(0, 4).Draw(t, "w")
			w[i] = float64(n)
			for range n {
				repeated = append(repeated, x[i])
			}
		}
		if len(repeated) == 0 {
			return
		}
		slices.Sort(repeated)
		k := rapid.IntRange(1, len(repeated)).Draw(t, "k")
		if got := WeightedQuantile(x, w, float64(k)/float64(len(repeated))); got != repeated[k-1] {
			t.Fatalf("got %v, want %v of %v", got, repeated[k-1], repeated)
		}
	})
}

func TestMeanInterval(t *testing.T) {
	near(t, "t(.95, 4)", StudentT(.95, 4), 2.7764451051977987)
	near(t, "t(.90, 1)", StudentT(.90, 1), 6.313751514675043)
	got := MeanInterval([]float64{1, 2, 3, 4, 5}, .95)
	near(t, "mean", got.Mean, 3)
	near(t, "low", got.Low, 3-2.7764451051977987*math.Sqrt(.5))
	near(t, "high", got.High, 3+2.7764451051977987*math.Sqrt(.5))
	if got.N != 5 || !got.Excludes(0) || got.Excludes(2) {
		t.Errorf("interval %+v", got)
	}
}

// The 90 % interval of normal data covers the mean in 90 % of 2,000 fixed draws, within 3 sigma.
func TestMeanIntervalCovers(t *testing.T) {
	rng, covered := rand.New(rand.NewPCG(1, 2)), 0
	for range 2000 {
		x := make([]float64, 6)
		for i := range x {
			x[i] = 10 + 3*rng.NormFloat64()
		}
		if i := MeanInterval(x, .9); i.Low <= 10 && 10 <= i.High {
			covered++
		}
	}
	if covered < 1760 || covered > 1840 {
		t.Errorf("covered %d of 2000, want about 1800", covered)
	}
}

func TestPairedDifference(t *testing.T) {
	a, b := []float64{5, 7, 9, 6, 8}, []float64{4, 7, 6, 7, 5}
	p := PairedDifference(a, b, .95) // differences 1 0 3 -1 3
	near(t, "mean", p.Mean, 1.2)
	sd := math.Sqrt(12.8 / 4)
	near(t, "half", p.High-p.Mean, 2.7764451051977987*sd/math.Sqrt(5))
	near(t, "p", p.P, 2*distuv.StudentsT{Sigma: 1, Nu: 4}.Survival(1.2/(sd/math.Sqrt(5))))
	if p.Wins != 3 || p.Losses != 1 || p.N != 5 || p.Excludes(0) {
		t.Errorf("paired %+v", p)
	}
	if same := PairedDifference(a, a, .95); same.P != 1 || same.Mean != 0 || same.Excludes(0) {
		t.Errorf("equal arms: %+v", same)
	}
	shifted := PairedDifference([]float64{2, 3, 4}, []float64{1, 2, 3}, .95)
	if shifted.P != 0 || !shifted.Excludes(0) {
		t.Errorf("constant shift: %+v", shifted)
	}
	// 1.96+0.8416 = 2.8016; 2.8016² · 4 = 31.4; 1.96²/2 = 1.9. The noncentral t gives 34 too.
	near(t, "pairs needed", PairsNeeded(1, 2, .95, .8), 34)
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{.01, .04, .03, .005, math.NaN()})
	for i, want := range []float64{.03, .06, .06, .02, math.NaN()} {
		near(t, "adjusted", got[i], want)
	}
	if got := Holm([]float64{.6, .7}); got[0] != 1 || got[1] != 1 {
		t.Errorf("capped: %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 12).Draw(t, "p")
		adjusted := Holm(p)
		for i := range p {
			want := 0.0 // brute force over the definition
			for j := range p {
				if p[j] <= p[i] {
					larger := 0
					for k := range p {
						if p[k] > p[j] || p[k] == p[j] && k >= j {
							larger++
						}
					}
					if p[j] < p[i] || j <= i {
						want = max(want, min(1, float64(larger)*p[j]))
					}
				}
			}
			if math.Abs(adjusted[i]-want) > 1e-12 {
				t.Fatalf("Holm(%v)[%d] = %v, want %v", p, i, adjusted[i], want)
			}
		}
	})
}

func TestBlockBootstrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float64, 400) // AR(1) with coefficient .8: standard error of the mean about 5 s/√n·…
	for i := range x {
		x[i] = rng.NormFloat64()
		if i > 0 {
			x[i] += .8 * x[i-1]
		}
	}
	mean := func(index []int) float64 {
		sum := 0.0
		for _, i := range index {
			sum += x[i]
		}
		return sum / float64(len(index))
	}
	narrow := BlockBootstrap(len(x), 1, 2000, .9, rng, mean)
	wide := BlockBootstrap(len(x), 40, 2000, .9, rng, mean)
	near(t, "mean", wide.Mean, Mean(x))
	// Long-run variance is (1/(1-.8))² = 25, against a marginal one of 1/(1-.64) = 2.8.
	asymptotic := 2 * 1.645 * 5 / math.Sqrt(float64(len(x)))
	if w := wide.High - wide.Low; w < .6*asymptotic || w > 1.3*asymptotic {
		t.Errorf("width %v with blocks, want about %v", w, asymptotic)
	}
	if w := narrow.High - narrow.Low; w > .5*asymptotic {
		t.Errorf("width %v without blocks: dependence not ignored", w)
	}
	n := 0
	whole := BlockBootstrap(3, 7, 1, .9, rng, func(index []int) float64 {
		n++
		if len(index) != 3 || n == 2 && ((index[1]-index[0]+3)%3 != 1 || (index[2]-index[1]+3)%3 != 1) {
			t.Errorf("resample %v is no rotation of the series", index)
		}
		return 1
	})
	if n != 2 || whole.Low != 1 || whole.High != 1 {
		t.Errorf("%d calls, %+v", n, whole)
	}
}

func TestIsotonic(t *testing.T) {
	got := Rising([]float64{1, 3, 2, 4, 3.5, 5}, nil)
	for i, want := range []float64{1, 2.5, 2.5, 3.75, 3.75, 5} {
		near(t, "rising", got[i], want)
	}
	got = Falling([]float64{1, .9, 1, .2}, []float64{1, 3, 1, 1})
	for i, want := range []float64{1, .925, .925, .2} {
		near(t, "falling", got[i], want)
	}
	// Against the min-max formula: fit_i = max_{j<=i} min_{k>=i} mean(y_j..y_k).
	rapid.Check(t, func(t *rapid.T) {
		y := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 10).Draw(t, "y")
		w := rapid.SliceOfN(rapid.Float64Range(.1, 3), len(y), len(y)).Draw(t, "w")
		fit := Rising(y, w)
		for i := range y {
			want := math.Inf(-1)
			for j := 0; j <= i; j++ {
				low := math.Inf(1)
				for k := i; k < len(y); k++ {
					low = min(low, WeightedMean(y[j:k+1], w[j:k+1]))
				}
				want = max(want, low)
			}
			if math.Abs(fit[i]-want) > 1e-9 {
				t.Fatalf("fit %v of %v: [%d] want %v", fit, y, i, want)
			}
		}
	})
}

func TestCrossing(t *testing.T) {
	x := []float64{1, 2, 3}
	for _, c := range []struct {
		y    []float64
		want float64
		ok   bool
	}{
		{[]float64{1, .95, .85}, 2.5, true}, {[]float64{1, .9, .8}, 2, true}, {[]float64{1, 1, 1}, 3, false}, {[]float64{.5, .4, .3}, 1, false},
	} {
		got, ok := Crossing(x, c.y, .9)
		if ok != c.ok {
			t.Errorf("%v: crossed %v", c.y, ok)
		}
		near(t, "crossing", got, c.want)
	}
	if _, ok := Crossing(nil, nil, .9); ok {
		t.Error("nothing crosses")
	}
}

func TestForecastErrors(t *testing.T) {
	e := ForecastErrors([]float64{110, 80, 300, 50}, []float64{100, 100, 200, 100}) // .1 .2 .5 .5
	near(t, "mape", e.MAPE, .325)
	near(t, "medape", e.MedAPE, .35)
	near(t, "p90ape", e.P90APE, .5)
	near(t, "bias", e.Bias, (math.Log(1.1)+math.Log(.8))/2)
	if e.N != 4 {
		t.Errorf("n = %d", e.N)
	}
	near(t, "pinball above", Pinball(2, 5, .9), 2.7)
	near(t, "pinball below", Pinball(5, 2, .9), .3)
}

func TestSketch(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var all, left, right Sketch
	x := make([]float64, 20000)
	for i := range x {
		x[i] = math.Exp(3 * rng.NormFloat64())
		if i%50 == 0 {
			x[i] = 0
		}
		all.Add(x[i])
		half := &left
		if i%3 == 0 {
			half = &right
		}
		half.Add(x[i])
	}
	left.Merge(&right)
	left.Merge(&Sketch{})
	slices.Sort(x)
	for _, q := range []float64{0, .01, .1, .5, .9, .99, .999, 1} {
		exact := x[max(1, int(math.Ceil(q*float64(len(x)))))-1]
		if got := all.Quantile(q); math.Abs(got-exact) > sketchError*exact*1.001 {
			t.Errorf("q%v = %v, want %v within 0.5 %%", q, got, exact)
		}
		if all.Quantile(q) != left.Quantile(q) {
			t.Errorf("q%v differs after merging", q)
		}
	}
	near(t, "mean", all.Mean(), Mean(x))
	if all.N() != 20000 || all.Max() != x[len(x)-1] {
		t.Errorf("n %d, max %v", all.N(), all.Max())
	}
	var odd Sketch
	for _, v := range []float64{math.NaN(), -1, math.Inf(1), 1e-12} {
		odd.Add(v)
	}
	if odd.N() != 3 || odd.Quantile(.5) != 0 || odd.Max() != sketchHigh {
		t.Errorf("odd values: n %d, median %v, max %v", odd.N(), odd.Quantile(.5), odd.Max())
	}
}

func TestLengthsMustAgree(t *testing.T) {
	for name, f := range map[string]func(){
		"paired":   func() { PairedDifference([]float64{1}, nil, .9) },
		"forecast": func() { ForecastErrors([]float64{1}, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
