package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// seedsOf draws the values of n seeds of two policies that share what a seed does to both.
func seedsOf(rng *rand.Rand, n int, effect, shared, own float64) (x, y []float64) {
	for range n {
		common := 100 + shared*rng.NormFloat64()
		x, y = append(x, common+effect+own*rng.NormFloat64()), append(y, common+own*rng.NormFloat64())
	}
	return x, y
}

// TestEqualPoliciesSeldomDiffer: of 400 comparisons of a policy with itself on independent seeds, about
// 5 % are significant.
func TestEqualPoliciesSeldomDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	found := 0
	for range 400 {
		x, y := seedsOf(rng, 8, 0, 30, 5)
		c := differ(x, y, 1)
		if c.Verdict == Better || c.Verdict == Worse {
			found++
		}
		if (c.P < .05) != c.CI95.Excludes(0) {
			t.Fatalf("p %v beside the interval %v", c.P, c.CI95)
		}
	}
	if found < 8 || found > 36 {
		t.Errorf("%d of 400 equal policies differ; want 2 to 9 %%", found)
	}
}

// TestFamiliesOfEqualPoliciesSeldomDiffer: of 400 families of twelve such comparisons, about 5 % have one
// that is significant; without the adjustment nearly half would.
func TestFamiliesOfEqualPoliciesSeldomDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	adjusted, alone := 0, 0
	for range 400 {
		family := make([]Comparison, 12)
		refs := make([]*Comparison, len(family))
		found := false
		for i := range family {
			x, y := seedsOf(rng, 8, 0, 30, 5)
			family[i] = differ(x, y, 1)
			refs[i] = &family[i]
			found = found || family[i].P < .05
		}
		together(refs)
		if found {
			alone++
		}
		for i := range family {
			if v := family[i].Verdict; v == Better || v == Worse {
				adjusted++
				break
			}
		}
	}
	if adjusted < 8 || adjusted > 36 || alone < 120 {
		t.Errorf("%d of 400 families have a winner (want 2 to 9 %%), %d without the adjustment", adjusted, alone)
	}
}

// TestPromisedSeedsFindTheEffect: with the seeds that are said to be needed, an effect of 10 % is found with
// a power of about 80 %.
func TestPromisedSeedsFindTheEffect(t *testing.T) {
	for _, own := range []float64{5, 8, 20} {
		rng := rand.New(rand.NewPCG(3, uint64(own)))
		sd := own * math.Sqrt2
		n := needed(10, sd, 100)
		found := 0
		for range 400 {
			x, y := seedsOf(rng, n, 10, 30, own)
			if differ(x, y, 1).Verdict == Better {
				found++
			}
		}
		if n > MinSeeds && (found < 280 || found > 360) {
			t.Errorf("sd %.1f: %d seeds find %d of 400; want 70 to 90 %%", sd, n, found)
		}
		if found < 280 {
			t.Errorf("sd %.1f: %d seeds find %d of 400", sd, n, found)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		x, y []float64
		good int
		want Verdict
	}{
		"more is better":          {[]float64{11, 12, 11, 12, 11}, []float64{9, 9, 9, 9, 9}, 1, Better},
		"less is better":          {[]float64{11, 12, 11, 12, 11}, []float64{9, 9, 9, 9, 9}, -1, Worse},
		"four seeds say nothing":  {[]float64{11, 12, 11, 12}, []float64{9, 9, 9, 9}, 1, TooFew},
		"includes 0":              {[]float64{9, 12, 8, 12, 9}, []float64{9, 9, 9, 9, 9}, 1, Undecided},
		"within 1 %":              {[]float64{100.1, 100.2, 100.1, 100.2, 100.3}, []float64{100, 100, 100, 100, 100}, 1, Same},
		"equal":                   {[]float64{1, 1, 1, 1, 1}, []float64{1, 1, 1, 1, 1}, 1, Same},
		"neither is good":         {[]float64{11, 12, 11, 12, 11}, []float64{9, 9, 9, 9, 9}, 0, Undecided},
		"nothing in common":       {[]float64{math.NaN(), 1}, []float64{1, math.NaN()}, 1, NoData},
		"a missing pair is left":  {[]float64{11, 12, 11, 12, 11, math.NaN()}, []float64{9, 9, 9, 9, 9, 9}, 1, Better},
		"infinite is left out":    {[]float64{11, 12, 11, 12, math.Inf(1)}, []float64{9, 9, 9, 9, 9}, 1, TooFew},
		"against nothing at all":  {[]float64{1, 1.1, 1, 1.1, 1}, []float64{0, 0, 0, 0, 0}, 1, Better},
		"nothing on either seeds": {[]float64{0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0}, 1, Same},
	} {
		got := differ(c.x, c.y, c.good)
		if got.Verdict != c.want {
			t.Errorf("%s: %s, want %s (%+v)", name, got.Verdict, c.want, got)
		}
		if (got.Verdict == Undecided) != (got.Needed > 0) {
			t.Errorf("%s: %s, and %d seeds needed", name, got.Verdict, got.Needed)
		}
	}
}

// TestWinsFollowWhatIsGood: seeds won are counted in the direction of the metric.
func TestWinsFollowWhatIsGood(t *testing.T) {
	x, y := []float64{1, 1, 3}, []float64{2, 2, 2}
	if up, down := differ(x, y, 1), differ(x, y, -1); up.Wins != 1 || up.Losses != 2 || down.Wins != 2 || down.Losses != 1 {
		t.Errorf("%d won, %d lost; turned round %d and %d", up.Wins, up.Losses, down.Wins, down.Losses)
	}
}
