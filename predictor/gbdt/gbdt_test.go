package gbdt

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func nan() float32 { return float32(math.NaN()) }

// friedman fills a table with Friedman's first benchmark function and a useless feature.
func friedman(n int, noise float64, rng *rand.Rand) *Table {
	t := NewTable(6)
	for range n {
		x := make([]float32, 6)
		for i := range x {
			x[i] = rng.Float32()
		}
		y := 10*math.Sin(math.Pi*float64(x[0]*x[1])) + 20*math.Pow(float64(x[2])-.5, 2) + 10*float64(x[3]) + 5*float64(x[4])
		if err := t.Add(x, y+noise*rng.NormFloat64(), 1); err != nil {
			panic(err)
		}
	}
	return t
}

func rms(m *Model, t *Table) float64 {
	var sum float64
	for r, y := range t.y {
		d := y - m.Predict(t.x[r*t.dim:(r+1)*t.dim])
		sum += d * d
	}
	return math.Sqrt(sum / float64(t.Len()))
}

func TestLearnsFriedman(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	train, test := friedman(2000, 0.5, rng), friedman(500, 0, rng)
	var flat float64
	for _, y := range test.y {
		flat += y / float64(test.Len())
	}
	var spread float64
	for _, y := range test.y {
		spread += (y - flat) * (y - flat) / float64(test.Len())
	}
	for name, p := range map[string]Params{
		"squared": {Trees: 150},
		"pinball": {Trees: 150, Quantile: 0.5},
	} {
		m, err := Train(train, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := rms(m, test); got > 0.3*math.Sqrt(spread) {
			t.Errorf("%s: error %.2f of spread %.2f", name, got, math.Sqrt(spread))
		}
	}
}

// TestPinballCoverage: a forecast of the 0.9 quantile is exceeded by about a tenth, in each half of
// a feature that changes the spread.
func TestPinballCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tab := NewTable(1)
	for range 4000 {
		x := rng.Float32()
		if err := tab.Add([]float32{x}, rng.NormFloat64()*float64(1+4*x), 1); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Train(tab, Params{Trees: 100, Quantile: 0.9, MinWeight: 100})
	if err != nil {
		t.Fatal(err)
	}
	var below, n [2]float64
	for r, y := range tab.y {
		half := 0
		if tab.x[r] > .5 {
			half = 1
		}
		n[half]++
		if y <= m.Predict(tab.x[r:r+1]) {
			below[half]++
		}
	}
	for h := range below {
		if c := below[h] / n[h]; c < .87 || c > .93 {
			t.Errorf("half %d: coverage %.3f", h, c)
		}
	}
}

func TestMissingIsAValueOfItsOwn(t *testing.T) {
	tab := NewTable(1)
	for i := range 300 {
		x, y := float32(i%100), float64(i%100)
		if i >= 200 {
			x, y = nan(), 500
		}
		if err := tab.Add([]float32{x}, y, 1); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Train(tab, Params{Trees: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x    float32
		want float64
	}{{nan(), 500}, {20, 20}, {80, 80}} {
		if got := m.Predict([]float32{c.x}); math.Abs(got-c.want) > 10 {
			t.Errorf("Predict(%v) = %.1f, want about %.0f", c.x, got, c.want)
		}
	}
}

// TestMissingGoesWhereItsTargetsAre: rows that lack a feature at random are forecast like the side of
// the split that their targets resemble, under either loss, by row and by column; a feature that no
// tree reads may be missing for nothing.
func TestMissingGoesWhereItsTargetsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, high := rapid.Uint64().Draw(t, "seed"), rapid.Bool().Draw(t, "high")
		share := rapid.Float64Range(0.1, 0.6).Draw(t, "share")
		p := Params{Trees: 40, Depth: rapid.IntRange(1, 3).Draw(t, "depth"), Quantile: rapid.SampledFrom([]float64{0, .5}).Draw(t, "quantile")}
		rng := rand.New(rand.NewPCG(seed, 2))
		tab := NewTable(2)
		for range 300 {
			x := []float32{rng.Float32(), 1} // the second never varies
			y := rng.NormFloat64()
			if rng.Float64() < share {
				if x[0] = nan(); high {
					y += 20
				}
			} else if x[0] > .5 {
				y += 20
			}
			if err := tab.Add(x, y, 1); err != nil {
				t.Fatal(err)
			}
		}
		m, err := Train(tab, p)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		if high {
			want = 20
		}
		rows := [][]float32{{nan(), 1}, {nan(), nan()}, {.1, 1}, {.1, nan()}, {.9, 1}, {.9, nan()}}
		var c Columns
		c.Fill(len(rows), func(r int) []float32 { return rows[r] })
		dst := make([]float32, len(rows))
		m.PredictColumns(dst, &c)
		for r, want := range []float64{want, want, 0, 0, 20, 20} {
			if got := m.Predict(rows[r]); math.Abs(got-want) > 2.5 || math.Abs(float64(dst[r])-got) > 1e-3 {
				t.Fatalf("%v: %.2f, by columns %.2f, want about %v", rows[r], got, dst[r], want)
			}
		}
		if m.Used(1) {
			t.Fatal("a constant feature is used")
		}
	})
}

func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		tab := NewTable(3)
		for range 200 {
			x := []float32{rng.Float32(), rng.Float32(), rng.Float32()}
			if rng.IntN(10) == 0 {
				x[1] = nan()
			}
			y := 3*float64(x[0]) - 2*float64(x[2]) + 2*rng.NormFloat64()
			if err := tab.Add(x, y, 0.1+rng.Float64()); err != nil {
				t.Fatal(err)
			}
		}
		p := Params{Trees: 20, Depth: 3, MinWeight: 1, Monotone: []int8{1, 0, -1}, Quantile: []float64{0, .5, .9}[rng.IntN(3)]}
		m, err := Train(tab, p)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			x := []float32{rng.Float32(), rng.Float32(), rng.Float32()}
			z := []float32{x[0] + rng.Float32(), x[1], x[2] - rng.Float32()}
			if a, b := m.Predict(x), m.Predict(z); b < a-1e-6 {
				t.Fatalf("falls from %v to %v between %v and %v", a, b, x, z)
			}
		}
	})
}

// TestColumnsEqualRows: the batch evaluation is the row evaluation, and training is deterministic.
func TestColumnsEqualRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		tab := friedman(150, 1, rng)
		for i := range tab.x {
			if rng.IntN(20) == 0 {
				tab.x[i] = nan()
			}
		}
		p := Params{Trees: 15, MinWeight: 2, Quantile: []float64{0, .5}[rng.IntN(2)]}
		m, err := Train(tab, p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Train(tab, p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmp.AllowUnexported(Model{}, tree{}, level{})); diff != "" {
			t.Fatalf("two runs differ:\n%s", diff)
		}
		var cols Columns
		row := func(r int) []float32 { return tab.x[r*tab.dim : (r+1)*tab.dim] }
		cols.Fill(tab.Len(), row)
		dst := make([]float32, tab.Len())
		m.PredictColumns(dst, &cols)
		for r, got := range dst {
			if want := m.Predict(tab.x[r*tab.dim : (r+1)*tab.dim]); math.Abs(float64(got)-want) > 1e-4 {
				t.Fatalf("row %d: %v by columns, %v by row", r, got, want)
			}
		}
		if n := testing.AllocsPerRun(10, func() { cols.Fill(tab.Len(), row); m.PredictColumns(dst, &cols) }); n != 0 {
			t.Fatalf("%v allocations", n)
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	tab := NewTable(2)
	for _, c := range []struct {
		x []float32
		y float64
		w float64
	}{
		{[]float32{1}, 1, 1}, {[]float32{1, 2}, math.NaN(), 1}, {[]float32{1, 2}, math.Inf(1), 1},
		{[]float32{1, 2}, 1, 0}, {[]float32{1, 2}, 1, -1}, {[]float32{1, 2}, 1, math.NaN()}, {[]float32{1, float32(math.Inf(1))}, 1, 1},
	} {
		if err := tab.Add(c.x, c.y, c.w); err == nil {
			t.Errorf("row %+v accepted", c)
		}
	}
	if tab.Len() != 0 {
		t.Fatalf("%d refused rows kept", tab.Len())
	}
	if _, err := Train(tab, Params{}); err == nil {
		t.Error("trained on nothing")
	}
	if err := tab.Add([]float32{1, nan()}, 3, 1); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Params{{Trees: -1}, {Depth: 9}, {Rate: 2}, {Rate: math.NaN()}, {Quantile: 1}, {Quantile: math.NaN()}, {Monotone: []int8{1}}, {MinWeight: math.NaN()}} {
		if _, err := Train(tab, p); err == nil {
			t.Errorf("accepted %+v", p)
		}
	}
	m, err := Train(tab, Params{})
	if err != nil || m.Predict([]float32{9, 9}) != 3 {
		t.Errorf("one row: %v, %v", m, err)
	}
}

func BenchmarkTrain(b *testing.B) {
	tab := friedman(3000, 1, rand.New(rand.NewPCG(1, 1)))
	for b.Loop() {
		if _, err := Train(tab, Params{Quantile: 0.5}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPredictColumns(b *testing.B) {
	tab := friedman(3000, 1, rand.New(rand.NewPCG(1, 1)))
	m, err := Train(tab, Params{})
	if err != nil {
		b.Fatal(err)
	}
	var cols Columns
	dst := make([]float32, 100)
	b.ReportAllocs()
	for b.Loop() {
		cols.Fill(100, func(r int) []float32 { return tab.x[r*tab.dim : (r+1)*tab.dim] })
		m.PredictColumns(dst, &cols)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/row")
}

func TestOrderKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float32().Draw(t, "a"), rapid.Float32().Draw(t, "b")
		if (a < b) != (order(a) < order(b)) || (a == b) != (order(a) == order(b)) {
			t.Fatalf("order(%v) = %d, order(%v) = %d", a, order(a), b, order(b))
		}
	})
	if zero := float32(0); order(-zero) != order(zero) || order(float32(math.Inf(1))) == math.MaxInt32 {
		t.Error("zeros differ, or infinity is as high as a missing value")
	}
}
