package workload

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// all are the instants of a process as seconds.
func all(t *testing.T, p times, from, until float64) []float64 {
	t.Helper()
	var out []float64
	last := time.Duration(0)
	for {
		at, ok := p.next()
		if !ok {
			return out
		}
		if at < last || at.Seconds() < from || at.Seconds() >= until {
			t.Fatalf("arrival at %s after %s, outside [%v, %v)", at, last, from, until)
		}
		last = at
		out = append(out, at.Seconds())
	}
}

func gaps(x []float64) []float64 {
	g := make([]float64, len(x)-1)
	for i := range g {
		g[i] = x[i+1] - x[i]
	}
	return g
}

func between(x []float64, from, until float64) float64 {
	n := 0.0
	for _, v := range x {
		if v >= from && v < until {
			n++
		}
	}
	return n
}

func TestPoisson(t *testing.T) {
	a := Arrivals{Kind: "poisson", Rate: 20}
	x := all(t, a.open(1.5, 100*time.Second, 600*time.Second, stream(1, "a")), 100, 600)
	within(t, "count", float64(len(x)), 15000, 4*math.Sqrt(15000))
	within(t, "gaps", kolmogorov(gaps(x), distuv.Exponential{Rate: 30}.CDF), 0, 1.95/math.Sqrt(15000))
}

func TestGammaArrivals(t *testing.T) {
	a := Arrivals{Kind: "gamma", Rate: 40, CV: 3}
	x := all(t, a.open(1, 0, 1000*time.Second, stream(1, "a")), 0, 1000)
	g := gaps(x)
	within(t, "count", float64(len(x)), 40000, 4*3*math.Sqrt(40000))
	within(t, "cv", stat.StdDev(g, nil)/stat.Mean(g, nil), 3, .15)
}

func TestSquareWave(t *testing.T) {
	a := Arrivals{Kind: "square", Rate: 18, High: 90, Every: 60 * time.Second, Length: 20 * time.Second}
	x := all(t, a.open(1, 30*time.Second, 630*time.Second, stream(1, "a")), 30, 630)
	low, high := 0.0, 0.0
	for k := range 10 {
		start := 30 + 60*float64(k)
		low += between(x, start, start+40)
		high += between(x, start+40, start+60)
	}
	within(t, "low", low, 18*400, 4*math.Sqrt(18*400))
	within(t, "high", high, 90*200, 4*math.Sqrt(90*200))
	within(t, "all", low+high, float64(len(x)), 0)
}

func TestSpikes(t *testing.T) {
	a := Arrivals{Kind: "spikes", Rate: 300, Every: 30 * time.Second, Length: 1500 * time.Millisecond, First: 20 * time.Second}
	x := all(t, a.open(2, 5*time.Second, 305*time.Second, stream(1, "a")), 5, 305)
	in := 0.0
	for k := range 10 {
		start := 25 + 30*float64(k)
		in += between(x, start, start+1.5)
	}
	within(t, "in spikes", in, float64(len(x)), 0)
	within(t, "count", in, 10*900, 4*math.Sqrt(9000))
}

func TestBursts(t *testing.T) {
	a := Arrivals{Kind: "burst", Count: 250, Every: 15 * time.Second, Length: 200 * time.Millisecond, First: time.Second}
	x := all(t, a.open(1.6, 0, 60*time.Second, stream(1, "a")), 0, 60)
	within(t, "count", float64(len(x)), 4*400, 0)
	var offsets []float64
	for k := range 4 {
		start := 1 + 15*float64(k)
		within(t, "burst", between(x, start, start+.2), 400, 0)
	}
	for _, v := range x {
		offsets = append(offsets, math.Mod(v-1, 15))
	}
	within(t, "offsets", kolmogorov(offsets, distuv.Uniform{Min: 0, Max: .2}.CDF), 0, 1.95/math.Sqrt(1600))
	if got := all(t, (&Arrivals{Kind: "burst", Count: 1, Every: time.Second}).open(.4, 0, time.Minute, stream(1, "a")), 0, 60); got != nil {
		t.Errorf("0.4 requests a burst give %d", len(got))
	}
}

func TestJoins(t *testing.T) {
	a := Arrivals{Kind: "closed", Count: 25, Ramp: 10 * time.Second, Steps: []Step{{At: 60 * time.Second, Users: 50}, {At: 120 * time.Second, Users: 40}, {At: 500 * time.Second, Users: 100}}}
	x := all(t, a.joins(2, 5*time.Second, 300*time.Second), 5, 300)
	within(t, "first", between(x, 5, 15), 50, 0)
	within(t, "evenly", x[25], 10, 1e-9)
	within(t, "step", between(x, 65, 65.001), 50, 0)
	within(t, "count: a lower step takes nobody away, a late one brings nobody", float64(len(x)), 100, 0)
}
