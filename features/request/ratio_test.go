package request

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestRatiosConverge: the estimate finds the ratio of a model, long prompts weighing more, and
// follows when it changes.
func TestRatiosConverge(t *testing.T) {
	var r Ratios
	if got := r.Estimate("m", 4000); got != 1000 {
		t.Errorf("before anything is learned: %d tokens of 4000 bytes, want 1000", got)
	}
	for _, ratio := range []float64{1.3, 6} {
		for i := range 400 {
			tokens := 500 + i%7*300
			r.Learn("m", int(float64(tokens)*ratio), tokens)
		}
		if got, want := float64(r.Estimate("m", 120000)), 120000/ratio; math.Abs(got-want)/want > 0.05 {
			t.Errorf("ratio %v: %v tokens, want %v", ratio, got, want)
		}
	}
	if got := r.Estimate("other", 4000); got != 1000 {
		t.Errorf("another model: %d tokens, want 1000", got)
	}
}

// TestRatiosBounds: empty and implausible samples teach nothing.
func TestRatiosBounds(t *testing.T) {
	var r Ratios
	for _, s := range [][2]int{{0, 5}, {5, 0}, {-1, 5}, {5, -1}, {10, 100}, {1000, 1}, {math.MaxInt, 1}, {1, math.MaxInt}} {
		r.Learn("m", s[0], s[1])
	}
	if len(r.models) != 0 {
		t.Error("learned from nothing")
	}
	for bytes, want := range map[int]int{-5: 0, 0: 0, 1: 1, 4: 1, 6: 2} {
		if got := r.Estimate("m", bytes); got != want {
			t.Errorf("%d bytes: %d tokens, want %d", bytes, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var r Ratios
		for range rapid.IntRange(0, 20).Draw(t, "samples") {
			r.Learn("m", rapid.IntRange(-10, 1<<30).Draw(t, "bytes"), rapid.IntRange(-10, 1<<30).Draw(t, "tokens"))
		}
		n := rapid.IntRange(1, 1<<24).Draw(t, "n")
		if got := r.Estimate("m", n); got < 1 || float64(got) > float64(n)/minRatio+1 || float64(got) < float64(n)/maxRatio-1 {
			t.Fatalf("%d tokens of %d bytes", got, n)
		}
	})
}

// TestRatiosCap: names past the cap share one ratio, and memory stays.
func TestRatiosCap(t *testing.T) {
	var r Ratios
	r.Learn("first", 8000, 1000)
	for i := range 10 * maxRatioModels {
		r.Learn(fmt.Sprint("model-", i), 2000, 1000)
	}
	if len(r.models) != maxRatioModels {
		t.Errorf("%d models, want %d", len(r.models), maxRatioModels)
	}
	if a, b := r.Estimate("late-1", 4000), r.Estimate("late-2", 4000); a != b || a < 1900 {
		t.Errorf("late names: %d and %d tokens of 4000 bytes, want about 2000", a, b)
	}
	if got := r.Estimate("first", 8000); got > 1200 {
		t.Errorf("the first name forgot: %d tokens of 8000 bytes", got)
	}
}

func TestRatiosConcurrent(t *testing.T) {
	var r Ratios
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				r.Learn(fmt.Sprint(i%300), 400*(g+1), 100)
				r.Estimate(fmt.Sprint(i%400), 100)
			}
		})
	}
	wg.Wait()
}
