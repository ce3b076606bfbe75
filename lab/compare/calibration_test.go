package compare

import (
	"math/rand/v2"
	"testing"
)

// TestARealPolicySeldomDiffersFromItself: 96 runs of one policy with as many seeds, of which 400 times
// eight are compared with eight others.
func TestARealPolicySeldomDiffersFromItself(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short: plays 96 runs")
	}
	runs := &Runs{Arena: arenaOf(t, tiny)}
	var times []float64
	distinct := map[float64]bool{}
	for seed := range uint64(96) {
		r, err := runs.Play(t.Context(), "random", 2, seed)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, r.E2E.Mean)
		distinct[r.E2E.Mean] = true
	}
	if len(distinct) < 48 {
		t.Fatalf("only %d different times of 96: nothing varies", len(distinct))
	}
	rng := rand.New(rand.NewPCG(4, 1))
	found := 0
	for range 400 {
		rng.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
		if v := differ(times[:8], times[8:16], -1).Verdict; v == Better || v == Worse {
			found++
		}
	}
	if found < 8 || found > 36 {
		t.Errorf("%d of 400 comparisons of a policy with itself are significant; want 2 to 9 %%", found)
	}
}
