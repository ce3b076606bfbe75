package calibrate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/engine"
	"pgregory.net/rapid"
)

// synthetic are passes of an engine of the table, each a random batch, with stalls in some.
func synthetic(t *testing.T, n int, stalls float64) ([]datasets.Pass, *engine.Engine) {
	t.Helper()
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	coefs, err := table.Find("H100", "llama-3.1-8b", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Coefs: *coefs})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	passes := make([]datasets.Pass, n)
	for i := range passes {
		p := &passes[i]
		p.DecodeRequests = 1 + rng.IntN(60)
		p.DecodeKV = p.DecodeRequests * (100 + rng.IntN(4000))
		var chunks [][2]int
		if rng.IntN(5) == 0 {
			q, ctx := 64+rng.IntN(4000), rng.IntN(8000)
			chunks = append(chunks, [2]int{q, ctx})
			p.PrefillTokens, p.PrefillRequests, p.PrefillKV = q, 1, ctx
		}
		p.Latency = e.StepTime(p.DecodeRequests, p.DecodeKV, chunks...) / 1e6
		if rng.Float64() < stalls {
			p.Latency *= 3
		}
	}
	return passes, e
}

// TestFitPassesRecovers fits recordings whose coefficients are known: step times of batches that were
// not recorded come out right, stalls or not.
func TestFitPassesRecovers(t *testing.T) {
	for _, stalls := range []float64{0, 0.1} {
		passes, known := synthetic(t, 3000, stalls)
		f, err := FitPasses(passes)
		if err != nil {
			t.Fatal(err)
		}
		if f.Error > 0.01 || f.ErrorPrefill > 0.02 {
			t.Errorf("stalls %v: errors %.4f, %.4f with prefill; want below 0.01, 0.02", stalls, f.Error, f.ErrorPrefill)
		}
		c := f.Coefs
		c.GPU, c.Model, c.TP, c.KVBlocks = "X", "x", 1, 1000
		fitted, err := engine.New(engine.Config{Coefs: c, Profile: engine.Profile{Name: "none"}, Kernel: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []struct{ decodes, context, chunk, before int }{{1, 500, 0, 0}, {16, 30000, 0, 0}, {50, 90000, 0, 0}, {20, 40000, 2000, 0}, {5, 9000, 500, 6000}} {
			var chunks [][2]int
			if b.chunk > 0 {
				chunks = append(chunks, [2]int{b.chunk, b.before})
			}
			got, want := fitted.StepTime(b.decodes, b.context, chunks...), known.StepTime(b.decodes, b.context, chunks...)
			if math.Abs(got/want-1) > 0.05 {
				t.Errorf("stalls %v, %+v: %.0f us, want %.0f", stalls, b, got, want)
			}
		}
	}
}

func TestFitPassesTooFew(t *testing.T) {
	passes, _ := synthetic(t, 60, 0)
	if _, err := FitPasses(passes); err == nil || !strings.Contains(err.Error(), "too few to fit") {
		t.Errorf("error %v", err)
	}
}

// TestWarmed: the first three passes of a kind and size are left out, passes without work or time too.
func TestWarmed(t *testing.T) {
	var passes []datasets.Pass
	for range 5 {
		passes = append(passes, datasets.Pass{DecodeRequests: 1, Latency: 0.01}, datasets.Pass{PrefillTokens: 100, PrefillRequests: 1, Latency: 0.02})
	}
	passes = append(passes, datasets.Pass{Latency: 0.01}, datasets.Pass{DecodeRequests: 1})
	if n := len(warmed(passes)); n != 4 {
		t.Errorf("%d passes left, want 4", n)
	}
}

// TestRegressionNonNegative: whatever the rows, coefficients are finite and not negative.
func TestRegressionNonNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, p := rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "columns")
		x, y := make([][]float64, n), make([]float64, n)
		for i := range x {
			x[i] = rapid.SliceOfN(rapid.Float64Range(0, 1e6), p, p).Draw(t, "x")
			y[i] = rapid.Float64Range(0, 1e6).Draw(t, "y")
		}
		for i, b := range regression(x, y) {
			if !(b >= 0) || math.IsInf(b, 0) {
				t.Fatalf("coefficient %d is %v", i, b)
			}
		}
	})
}
