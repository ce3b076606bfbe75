package drift

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func detector(t testing.TB, p Params) Detector {
	t.Helper()
	d, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// student is Student's t with 4 degrees of freedom, clipped at 3.
func student(rng *rand.Rand) float64 {
	var chi float64
	for range 4 {
		n := rng.NormFloat64()
		chi += n * n
	}
	return min(max(rng.NormFloat64()/math.Sqrt(chi/4), -3), 3)
}

// runLength is the mean number of observations for an alarm, over detectors that each see n.
func runLength(t testing.TB, p Params, detectors, n int, draw func(*rand.Rand) float64) float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	alarms := 0
	for range detectors {
		d := detector(t, p)
		for range n {
			if d.Observe(draw(rng)) != None {
				alarms++
			}
		}
	}
	return float64(detectors*n) / float64(max(alarms, 1))
}

// TestFalseAlarmsAreRare: residuals without a shift raise, on average, at most one alarm in 2,000 observations, from
// the first on, whether the spread is given or learned, with normal and with heavy tails.
func TestFalseAlarmsAreRare(t *testing.T) {
	scaled := func(f func(*rand.Rand) float64) func(*rand.Rand) float64 {
		return func(rng *rand.Rand) float64 { return 0.2 * f(rng) }
	}
	for _, c := range []struct {
		name string
		p    Params
		draw func(*rand.Rand) float64
	}{
		{"normal, sigma given", Params{Sigma: 1}, (*rand.Rand).NormFloat64},
		{"normal, sigma learned", Params{}, scaled((*rand.Rand).NormFloat64)},
		{"t4 clipped at 3, its sigma given", Params{Sigma: 1.2}, student},
		{"t4 clipped at 3, sigma learned", Params{}, scaled(student)},
	} {
		got := runLength(t, c.p, 200, 3000, c.draw)
		t.Logf("%s: %.0f observations for an alarm", c.name, got)
		if got < 2000 {
			t.Errorf("%s: an alarm in %.0f observations", c.name, got)
		}
	}
}

// TestRunLengthIsSiegmunds: the formula of the package comment, without clipping, at limits where many
// alarms can be seen.
func TestRunLengthIsSiegmunds(t *testing.T) {
	for _, c := range []struct{ k, h float64 }{{0.25, 8}, {0.5, 4}, {0.25, 5}} {
		x := 2 * c.k * (c.h + 1.166)
		want := (math.Exp(x) - x - 1) / (2 * c.k * c.k) / 2
		got := runLength(t, Params{Slack: c.k, Limit: c.h, Clip: 100, Rest: -1, Sigma: 1}, 1, 500_000, (*rand.Rand).NormFloat64)
		t.Logf("k %v, h %v: %.0f, formula %.0f", c.k, c.h, got, want)
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("k %v, h %v: an alarm in %.0f observations, not %.0f", c.k, c.h, got, want)
		}
	}
}

// TestShiftsAreFoundSoon: answers that take half as long again, with a spread of 0.2, are noticed
// within 30 observations, and so is the return to normal.
func TestShiftsAreFoundSoon(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, shift := range []float64{math.Log(1.5), -math.Log(1.5)} {
		want := Slower
		if shift < 0 {
			want = Faster
		}
		var delays []int
		for range 200 {
			d := detector(t, Params{})
			for range 300 {
				d.Observe(0.2 * rng.NormFloat64())
			}
			d.Rearm()
			delay := 1
			for d.Observe(shift+0.2*rng.NormFloat64()) == None {
				if delay++; delay > 1000 {
					t.Fatal("no alarm")
				}
			}
			if d.Last() != want {
				t.Fatalf("shift %v: %v", shift, d.Last())
			}
			delays = append(delays, delay)
		}
		slices.Sort(delays)
		t.Logf("shift %.2f: delay median %d, largest %d", shift, delays[100], delays[199])
		if delays[199] > 30 {
			t.Errorf("shift %.2f: found after %d observations", shift, delays[199])
		}
	}
}

func TestAlarmThenRestThenAlarm(t *testing.T) {
	d := detector(t, Params{Sigma: 1, Limit: 5, Rest: 3})
	var at []int
	for i := 1; i <= 20; i++ {
		if dir := d.Observe(2.25); dir != None { // 2 more evidence each: the third exceeds 5
			if dir != Slower || d.Evidence() != 0 {
				t.Errorf("observation %d: %v, evidence %v", i, dir, d.Evidence())
			}
			at = append(at, i)
		}
	}
	if want := []int{3, 9, 15}; !slices.Equal(at, want) {
		t.Errorf("alarms at %v, want %v", at, want)
	}
	d.Rearm()
	d.Observe(-2.25)
	if d.Evidence() != 0.4 || d.Last() != Slower {
		t.Errorf("evidence %v, last %v", d.Evidence(), d.Last())
	}
	d.Reset()
	if d != detector(t, Params{Sigma: 1, Limit: 5, Rest: 3}) {
		t.Error("a reset detector differs from a new one")
	}
}

// TestSpreadFollows: the learned spread is that of the residuals, also after these have changed, and
// never below 1 %.
func TestSpreadFollows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	d := detector(t, Params{})
	for _, sigma := range []float64{0.1, 0.5, 0.2} {
		for range 600 {
			d.Observe(sigma * rng.NormFloat64())
		}
		if got := d.Sigma() / sigma; got < 0.8 || got > 1.25 {
			t.Errorf("sigma %v of %v", d.Sigma(), sigma)
		}
	}
	for range 2000 {
		if d.Observe(0) != None {
			t.Fatal("alarm without residuals")
		}
	}
	if d.Sigma() != leastSigma {
		t.Errorf("sigma %v without residuals", d.Sigma())
	}
}

// TestAnyResidualIsTaken: whatever comes, NaN and infinities among it, the state stays finite, equal
// input gives equal output, NaN changes nothing, and mirrored input mirrored alarms.
func TestAnyResidualIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{Limit: 4, Sigma: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "sigma")}
		value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0}))
		a, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		b := a
		mirror := a
		for _, z := range rapid.SliceOfN(value, 0, 300).Draw(t, "residuals") {
			before := a
			got := a.Observe(z)
			if math.IsNaN(z) && a != before {
				t.Fatal("NaN changed the state")
			}
			if again := b.Observe(z); again != got || a != b {
				t.Fatal("equal input, other output")
			}
			if m := mirror.Observe(-z); m != -got {
				t.Fatalf("%v mirrored to %v", got, m)
			}
			if e := a.Evidence(); !(e >= 0 && e <= 1) || !(a.Sigma() >= 0 && a.Sigma() <= math.MaxFloat32) {
				t.Fatalf("evidence %v, sigma %v", e, a.Sigma())
			}
		}
	})
}

func TestBadParamsAreRefused(t *testing.T) {
	for _, p := range []Params{{Slack: -1}, {Slack: math.NaN()}, {Limit: -1}, {Limit: math.Inf(1)}, {Clip: 0.2}, {Clip: math.NaN()}, {Sigma: -1}, {Sigma: 0.001}, {Sigma: math.NaN()}} {
		if _, err := New(p); err == nil {
			t.Errorf("%+v accepted", p)
		}
	}
	for d, want := range map[Direction]string{Slower: "slower", Faster: "faster", None: "none"} {
		if d.String() != want {
			t.Errorf("%d is %q", d, d.String())
		}
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	d := detector(t, Params{})
	if n := testing.AllocsPerRun(200, func() { d.Observe(0.5) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	d := detector(b, Params{})
	rng := rand.New(rand.NewPCG(7, 8))
	var z [1024]float64
	for i := range z {
		z[i] = 0.2 * rng.NormFloat64()
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		d.Observe(z[i&1023])
		i++
	}
}
