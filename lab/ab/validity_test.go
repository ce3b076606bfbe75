package ab

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/report"
)

// everExcludes reports whether the interval that may be read at any time excludes v after any pair.
func everExcludes(d *Paired, v float64) bool {
	var seq stat.Sequence
	for _, x := range d.diffs {
		seq.Add(x)
		if seq.Interval(0.95).Excludes(v) {
			return true
		}
	}
	return false
}

// TestAAExperimentsAreCalm: of 400 experiments of a policy with itself on independent seeds, 2 to 9 %
// differ at the 5 % level at their end, at most 5 % at any look of the always-valid interval, and none
// of those may claim a winner more often.
func TestAAExperimentsAreCalm(t *testing.T) {
	skipRaced(t)
	w := usual()
	w.memory, w.sway, w.requests = 0.5, 0.05, 60
	const runs = 400
	significant, ever, claims := 0, 0, 0
	for seed := range uint64(runs) {
		r := w.result(t, seed, Options{})
		d := r.primary(t)
		if d.N != w.blocks/2 || r.Block != 300 || r.Unit != "block" {
			t.Fatalf("seed %d: %d pairs of blocks of %v s, by %s", seed, d.N, r.Block, r.Unit)
		}
		if d.P < 0.05 {
			significant++
		}
		if everExcludes(d, 0) {
			ever++
		}
		if k := r.Verdicts[0].Kind; k == report.Switch || k == report.Keep {
			claims++
		}
	}
	t.Logf("of %d A/A experiments: significant at the end %.1f %%, excluded 0 at any look %.1f %%, verdict of a winner %.1f %%",
		runs, 100*float64(significant)/runs, 100*float64(ever)/runs, 100*float64(claims)/runs)
	if significant < runs*2/100 || significant > runs*9/100 || ever > runs*5/100 || claims > runs*5/100 {
		t.Errorf("significant %d, at any look %d, claims %d of %d", significant, ever, claims, runs)
	}
}

// TestCoverageUnderDependentBlocks: where blocks have levels of their own that last, requests are worth
// far less than their number, and the intervals of pairs hold what they promise all the same.
func TestCoverageUnderDependentBlocks(t *testing.T) {
	skipRaced(t)
	w := usual()
	w.memory, w.sway, w.effect, w.inSLO, w.requests = 0.5, 0.16, 0.05, 0.5, 60
	const runs = 400
	truth := 100 * w.effect
	fixed, ever, naive, effect := 0, 0, 0, 0.0
	for seed := range uint64(runs) {
		d := w.result(t, 1000+seed, Options{}).primary(t)
		if float64(d.Fixed[0]) <= truth && truth <= float64(d.Fixed[1]) {
			fixed++
		}
		if everExcludes(d, truth) {
			ever++
		}
		effect += float64(d.Effect) / runs
		if se := float64(d.SD) / math.Sqrt(float64(d.N)*float64(d.Effect)); math.Abs(float64(d.Diff)-truth) <= 1.96*se {
			naive++
		}
	}
	t.Logf("design effect %.1f; the truth is in the fixed interval in %.1f %%, outside the always-valid one at any look in %.1f %%; in that of independent requests in %.1f %%",
		effect, 100*float64(fixed)/runs, 100*float64(ever)/runs, 100*float64(naive)/runs)
	if fixed < runs*92/100 || fixed > runs*98/100 || ever > runs*5/100 || naive > runs*85/100 || effect < 2 {
		t.Errorf("fixed %d, ever %d, naive %d of %d", fixed, ever, naive, runs)
	}
}

// TestTenPercentIsFound: an effect of 10 % is found as often as the tool promised for that many pairs.
func TestTenPercentIsFound(t *testing.T) {
	skipRaced(t)
	w := usual()
	w.requests, w.sway, w.inSLO, w.effect, w.length = 40, 0.04, 0.7, 0.07, 4*time.Minute
	pilot := w
	pilot.blocks = 3000
	d := pilot.result(t, 5, Options{}).primary(t)
	d.Diff = report.Value(100 * w.effect) // what the pilot saw is off by chance
	l := Ledger{plan: &Plan{Arms: make([]Arm, 2)}}
	needed := l.needed(d, d.N)
	fixed, anyTime := float64(needed.Fixed), float64(needed.AnyTime)
	t.Logf("promised: %.0f points are shown by %v pairs read at the end, %v read at any time", needed.Effect, fixed, anyTime)
	for _, c := range []struct {
		pairs float64
		found func(*Result, *Paired) bool
	}{
		{fixed, func(_ *Result, d *Paired) bool { return d.P < 0.05 && d.Diff > 0 }},
		{anyTime, func(_ *Result, d *Paired) bool { return d.CI[0] > 0 }},
	} {
		w.blocks = 2 * int(c.pairs)
		found := 0
		const runs = 300
		for seed := range uint64(runs) {
			r := w.result(t, 50_000+7*seed, Options{})
			if c.found(r, r.primary(t)) {
				found++
			}
		}
		t.Logf("%v pairs: found in %.1f %%", c.pairs, 100*float64(found)/runs)
		if share := float64(found) / runs; share < 0.74 || share > 0.88 {
			t.Errorf("%v pairs: found in a share of %.3f, promised 0.8", c.pairs, share)
		}
	}
}

// skipRaced leaves out what takes long and starts no goroutine.
func skipRaced(t *testing.T) {
	if raced {
		t.Skip("statistics of many runs: nothing in them can race")
	}
}

// turn is one request of a session.
type turn struct {
	at      time.Duration
	session uint64
	arm     string
	late    bool
}

// TestSessionsAreClusters: requests of a session are alike, and may span cells of time; intervals hold
// what they promise because every session counts whole in one cell.
func TestSessionsAreClusters(t *testing.T) {
	skipRaced(t)
	const runs, sessions, turns = 200, 500, 10
	fixed, ever, naive, effect := 0, 0, 0, 0.0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var all []turn
		for range sessions {
			id, begin := rng.Uint64()|1<<63, time.Duration(rng.Float64()*float64(3*time.Hour))
			arm, p := "a", 0.1+0.8*float64(rng.IntN(2)) // sessions that always meet their SLO, or never
			if rng.IntN(2) == 0 {
				arm = "b"
			}
			for i := range turns {
				all = append(all, turn{begin + time.Duration(i)*40*time.Second, id, arm, rng.Float64() > p})
			}
		}
		slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
		each := func(add func(*features.Observation)) {
			o := *record(t0, "", "")
			for i, u := range all {
				o.At, o.Arm, o.Session, o.ID, o.TTFT = t0.Add(u.at), u.arm, u.session, strconv.Itoa(i), 80*time.Millisecond
				if u.late {
					o.TTFT = 2 * time.Second
				}
				add(&o)
			}
		}
		var s Survey
		each(func(o *features.Observation) { must(t, s.Add(0, o)) })
		plan, err := s.Plan(Options{Block: 5 * time.Minute})
		must(t, err)
		if plan.Unit != "session" {
			t.Fatalf("read as split by %s", plan.Unit)
		}
		l := plan.Ledger()
		each(l.Add)
		d := l.Result().primary(t)
		if !(d.Fixed[0] > 0 || d.Fixed[1] < 0) {
			fixed++
		}
		if everExcludes(d, 0) {
			ever++
		}
		effect += float64(d.Effect) / runs
		if se := float64(d.SD) / math.Sqrt(float64(d.N)*float64(d.Effect)); math.Abs(float64(d.Diff)) <= 1.96*se {
			naive++
		}
	}
	t.Logf("design effect %.1f; 0 is in the fixed interval in %.1f %%, outside the always-valid one at any look in %.1f %%; in that of independent requests in %.1f %%",
		effect, 100*float64(fixed)/runs, 100*float64(ever)/runs, 100*float64(naive)/runs)
	if fixed < runs*92/100 || fixed > runs*98/100 || ever > runs*5/100 || naive > runs*70/100 || effect < 4 {
		t.Errorf("fixed %d, ever %d, naive %d of %d", fixed, ever, naive, runs)
	}
}
