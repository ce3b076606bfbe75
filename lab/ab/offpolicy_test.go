package ab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
)

// bandit is an exploring arm over four endpoints whose mean TTFTs are known, as is how the forecasts
// are off.
type bandit struct {
	truth   [4]float64 // seconds, in order of the policy's ranking
	bias    [4]float64 // of the forecasts, a factor
	among   int
	explore float64
	sway    float64 // of the level of each minute, a factor
}

// play adds n decisions to d, one every two seconds.
func (b *bandit) play(rng *rand.Rand, n int, d *drawn) {
	level := 1.0
	for i := range n {
		if i%30 == 0 {
			level = math.Exp(b.sway * rng.NormFloat64())
		}
		o := record(t0.Add(time.Duration(i)*2*time.Second), "a", fmt.Sprint(i))
		size := math.Exp(0.5*rng.NormFloat64()) / math.Exp(0.125) // of the request, which forecasts know
		rank := 0
		if rng.Float64() < b.explore {
			rank = rng.IntN(b.among)
		}
		o.Propensity = b.explore / float64(b.among)
		if rank == 0 {
			o.Propensity += 1 - b.explore
		}
		o.Choice = features.Choice{Among: b.among, Rank: rank}
		for r := range b.among {
			o.Choice.TTFT[r] = float32(b.truth[r] * b.bias[r] * size)
		}
		o.TTFT = time.Duration(1e9 * b.truth[rank] * size * level / math.Exp(b.sway*b.sway/2) * (0.8 + 0.4*rng.Float64()))
		d.add(int64(i/30), o)
	}
}

// means are the truths of both targets in ms.
func (b *bandit) means() [targets]float64 {
	sum := 0.0
	for _, v := range b.truth[:b.among] {
		sum += v
	}
	return [targets]float64{1e3 * b.truth[0], 1e3 * sum / float64(b.among)}
}

// TestOffPolicyIsUnbiased: over many logs of a bandit whose truth is known, with forecasts that are
// wrong, estimates are right on average, and their intervals hold the truth as often as they say; the
// doubly robust ones are narrower where forecasts are good.
func TestOffPolicyIsUnbiased(t *testing.T) {
	skipRaced(t)
	for name, bias := range map[string][4]float64{"good forecasts": {1, 1, 1, 1}, "wrong forecasts": {0.5, 2, 0.7, 3}} {
		b := bandit{truth: [4]float64{0.1, 0.14, 0.2, 0.5}, bias: bias, among: 4, explore: 0.2, sway: 0.3}
		rng := rand.New(rand.NewPCG(21, 4))
		const runs = 300
		means := b.means()
		truth := map[string]float64{ownPick.String(): means[ownPick], evenly.String(): means[evenly], "saved by ranking, per decision": means[evenly] - means[ownPick]}
		sum, square, covered, width := map[string]float64{}, map[string]float64{}, map[string]int{}, map[string]float64{}
		for range runs {
			d := newDrawn()
			b.play(rng, 3000, d)
			list, refused := d.estimates("a")
			if len(list) != 5 || len(refused) > 0 {
				t.Fatalf("%s: %+v, %+v", name, list, refused)
			}
			for _, e := range list {
				key, want := e.Method+", "+e.Target, truth[e.Target]
				off := float64(e.TTFT.Mean) - want
				sum[key] += off / runs
				square[key] += off * off / runs
				width[key] += float64(e.TTFT.High-e.TTFT.Low) / runs
				if float64(e.TTFT.Low) <= want && want <= float64(e.TTFT.High) {
					covered[key]++
				}
			}
		}
		for key, off := range sum {
			t.Logf("%s, %s: off by %+.2f ms on average (scatter %.2f), width %.1f, covered %.1f %%", name, key, off, math.Sqrt(square[key]), width[key], 100*float64(covered[key])/runs)
			if se := math.Sqrt(square[key] / runs); math.Abs(off) > 3.5*se+0.002*means[evenly] {
				t.Errorf("%s, %s: biased by %+.2f ms", name, key, off)
			}
			if covered[key] < runs*90/100 {
				t.Errorf("%s, %s: the interval held the truth in %d of %d", name, key, covered[key], runs)
			}
		}
		if snips, robust := width["SNIPS, "+evenly.String()], width["doubly robust, "+evenly.String()]; name == "good forecasts" && robust > 0.8*snips {
			t.Errorf("doubly robust %.1f ms wide, SNIPS %.1f", robust, snips)
		}
	}
}

// TestOffPolicyRefuses: what weights do not bear is not estimated.
func TestOffPolicyRefuses(t *testing.T) {
	usual := bandit{truth: [4]float64{0.1, 0.14, 0.2, 0.5}, bias: [4]float64{1, 1, 1, 1}, among: 4, explore: 0.2}
	for name, c := range map[string]struct {
		change func(*bandit)
		spoil  func(*drawn)
		n      int
		want   string
		left   int // estimates given all the same
	}{
		"weights":         {func(b *bandit) { b.explore = 0.04 }, func(*drawn) {}, 3000, "a weight of 25: above 20", 2},
		"few cells":       {func(*bandit) {}, func(*drawn) {}, 300, "not enough data: 10 of 12 cells of time needed", 0},
		"no propensity":   {func(*bandit) {}, func(d *drawn) { o := record(t0, "a", "x"); o.Propensity = 0; o.Choice.Among = 2; d.add(0, o) }, 3000, "propensity: missing in 1 of 3001", 0},
		"no forecast":     {func(b *bandit) { b.bias[3] = 0 }, func(*drawn) {}, 3000, "3000 of 3000 decisions lack forecasts", 2},
		"small effective": {func(b *bandit) { b.among = 2 }, func(d *drawn) { d.square[evenly] *= 30 }, 3000, "an effective sample of", 2},
	} {
		b := usual
		c.change(&b)
		d := newDrawn()
		b.play(rand.New(rand.NewPCG(1, 1)), c.n, d)
		c.spoil(d)
		list, refused := d.estimates("a")
		text := ""
		for _, r := range refused {
			text += r.What + ": " + r.Why + "\n"
		}
		if !strings.Contains(text, c.want) || len(list) != c.left {
			t.Errorf("%s: %d estimates, refused %q; want %d and %q", name, len(list), text, c.left, c.want)
		}
		for _, e := range list {
			if e.Target == "saved by ranking, per decision" {
				t.Errorf("%s: a difference of what is refused", name)
			}
		}
	}
	if list, refused := (*drawn)(nil).estimates("b"); list != nil || len(refused) != 1 {
		t.Errorf("an arm that does not explore: %v, %v", list, refused)
	}
}

// TestRequestsWithoutAFirstTokenAreTold: they cannot be estimated, and are counted.
func TestRequestsWithoutAFirstTokenAreTold(t *testing.T) {
	d := newDrawn()
	for i, spoil := range []func(*features.Observation){
		func(*features.Observation) {},
		func(o *features.Observation) { o.TTFT = 0 },
		func(o *features.Observation) { o.Stream = false },
		func(o *features.Observation) { o.Endpoint = "elsewhere" },
	} {
		o := record(t0, "a", fmt.Sprint(i))
		o.Choice.Among, o.Propensity = 2, 0.5
		spoil(o)
		d.add(0, o)
	}
	if d.n != 4 || d.without != 3 || d.cells[0].n != 1 {
		t.Errorf("%+v", d)
	}
}
