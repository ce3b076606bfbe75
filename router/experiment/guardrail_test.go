package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// world makes observations of two arms at a rate that swings and bursts, with times that do likewise.
type world struct {
	rng    *rand.Rand
	now    time.Time
	load   float64 // common to both arms, wanders
	errors [2]float64
	slower [2]float64 // factor of times
	perSec float64
}

func newWorld(seed uint64) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 9)), now: t0, slower: [2]float64{1, 1}, errors: [2]float64{0.01, 0.01}, perSec: 20}
}

// next is the next observation, of arm "a" or "b" by chance.
func (w *world) next() *features.Observation {
	w.load = 0.999*w.load + 0.05*w.rng.NormFloat64()
	w.now = w.now.Add(time.Duration(w.rng.ExpFloat64() / w.perSec * math.Exp(-w.load/3) * float64(time.Second)))
	arm := w.rng.IntN(2)
	ttft := time.Duration(0.3 * w.slower[arm] * math.Exp(w.load/2+0.7*w.rng.NormFloat64()) * float64(time.Second))
	o := &features.Observation{
		At: w.now, Arm: string(rune('a' + arm)), Cause: fleet.Complete, Status: 200, TTFT: ttft, E2E: ttft, SLO: request.SLO{TTFT: time.Second},
	}
	if w.rng.Float64() < w.errors[arm] {
		o.Cause, o.Status, o.TTFT = fleet.UpstreamError, 500, 0
	}
	return o
}

// run feeds an experiment until it trips or the time is over.
func (w *world) run(e *Experiment, d time.Duration) *Trip {
	for end := w.now.Add(d); w.now.Before(end); {
		e.Observe(w.next())
		if t := e.trip.Load(); t != nil {
			return t
		}
	}
	return nil
}

// TestGuardrailsTrip: harm beyond the margin ends the experiment within minutes, for the reason that
// it has, and everybody goes to the control.
func TestGuardrailsTrip(t *testing.T) {
	for _, c := range []struct {
		name   string
		harm   func(w *world)
		metric Metric
		within time.Duration
	}{
		{"all fails", func(w *world) { w.errors[1] = 1 }, Errors, 15 * time.Second},
		{"a tenth fails", func(w *world) { w.errors[1] = 0.1 }, Errors, 10 * time.Minute},
		{"twice as slow", func(w *world) { w.slower[1] = 2 }, TTFT, 4 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []Trip
			e := ab(t, Options{Guardrails: DefaultGuardrails(), Tripped: func(t Trip) { told = append(told, t) }}, 0.5, 0.5)
			w := newWorld(1)
			if trip := w.run(e, 20*time.Minute); trip != nil {
				t.Fatalf("before: %s", trip)
			}
			c.harm(w)
			from := w.now
			trip := w.run(e, time.Hour)
			if trip == nil || trip.Arm != "b" || trip.Control != "a" || trip.Metric != c.metric && c.metric == Errors {
				t.Fatalf("%+v", trip)
			}
			t.Logf("after %v: %s", w.now.Sub(from), trip)
			if took := trip.At.Sub(from); took > c.within {
				t.Errorf("after %v", took)
			}
			for range 20 {
				if d := ask(t, e, w.now, ""); d.Arm != "a" || d.Policy != "rule-a" {
					t.Fatalf("%+v", d)
				}
			}
			w.run(e, time.Second)
			if len(told) != 1 || e.Status().Trip == nil || !strings.Contains(told[0].String(), "arm b is worse than control a: ") {
				t.Errorf("%v", told)
			}
		})
	}
}

// TestGuardrailsHaveMargins: a harm within the margin ends nothing.
func TestGuardrailsHaveMargins(t *testing.T) {
	e := ab(t, Options{Guardrails: []Guardrail{{Errors, 0.05}, {TTFT, 1.5}}}, 0.5, 0.5)
	w := newWorld(3)
	w.errors[1], w.slower[1] = 0.04, 1.2
	if trip := w.run(e, 2*time.Hour); trip != nil {
		t.Errorf("%s", trip)
	}
}

// TestFalseTripRate: in 15 simulated days of A/A experiments with common bursts no guardrail trips,
// where 1 in 190 days is what the package promises; the tests would trip if each look were taken at
// the usual 5 %.
func TestFalseTripRate(t *testing.T) {
	const days, cells = 15, 24 * 3600 / 5
	rng := rand.New(rand.NewPCG(11, 1))
	usual := 0
	for day := range days {
		var w watch
		w.start([]Guardrail{{Attainment, 1e-9}, {Errors, 1e-9}, {TTFT, 1 + 1e-9}}, leastCell, critical()) // the tests alone, without help of margins
		looks := false
		for c := range cells {
			for i := range w.rules {
				g := &w.rules[i]
				n := 20 + float64(rng.IntN(80))
				p := []float64{0.1, 0.01, 0}[i]
				harm := 0.3 * rng.NormFloat64() / math.Sqrt(n) // log ratio of quantiles
				if p > 0 {
					draw := func() (k float64) { // binomial, from one success to the next
						for i := -1.; ; k++ {
							if i += 1 + math.Floor(math.Log(1-rng.Float64())/math.Log(1-p)); i >= n {
								return k / n
							}
						}
					}
					harm = draw() - draw()
				}
				if len(g.harms) == mostCells {
					g.harms = append(g.harms[:0], g.harms[1:]...)
				}
				g.harms = append(g.harms, harm)
				if c%10 != 0 { // neighbouring windows say nearly the same
					continue
				}
				if mean, ok := g.shown(w.tests); ok {
					t.Errorf("day %d, cell %d: false trip of %s: %v in %v", day, c, g.Metric, mean, g.harms)
				}
				if n := len(g.harms); n == mostCells && !looks {
					m, v := 0., 0.
					for _, h := range g.harms {
						m += h / float64(n)
					}
					for _, h := range g.harms {
						v += (h - m) * (h - m) / float64(n-1)
					}
					looks = m > 1.67*math.Sqrt(v/float64(n))
				}
			}
		}
		if looks {
			usual++
		}
	}
	if usual < days*9/10 {
		t.Errorf("looks at 5 %% would have tripped on %d of %d days: this test shows nothing", usual, days)
	}
}

// TestAAExperimentsDoNotTrip runs whole experiments of every unit on observations.
func TestAAExperimentsDoNotTrip(t *testing.T) {
	for seed := range uint64(2) {
		e := ab(t, Options{Guardrails: DefaultGuardrails()}, 0.5, 0.5)
		if trip := newWorld(seed).run(e, 4*time.Hour); trip != nil {
			t.Errorf("%s", trip)
		}
		l := e.Status().Arms[1].Ledger
		if l.Ended < 50000 || l.SLO != l.Ended || l.Met == 0 || l.Failed == 0 {
			t.Errorf("%+v", l)
		}
	}
}

// TestWhatIsJudged: what the client did is not held against an arm, but leaving after the SLO was
// missed is a miss.
func TestWhatIsJudged(t *testing.T) {
	slo := request.SLO{TTFT: time.Second}
	for want, o := range map[string]features.Observation{
		"true {met}":             {Cause: fleet.Complete, SLO: slo, TTFT: time.Second},
		"true {missed}":          {Cause: fleet.Complete, SLO: slo, TTFT: time.Second + 1},
		"false left":             {Cause: fleet.ClientGone, SLO: slo, E2E: time.Second / 2},
		"true {missed} too late": {Cause: fleet.ClientGone, SLO: slo, E2E: 2 * time.Second},
		"false 4xx":              {Cause: fleet.UpstreamError, Status: 404, SLO: slo},
		"true {failed}":          {Cause: fleet.UpstreamError, Status: 503, SLO: slo},
		"true {failed} cut":      {Cause: fleet.Truncated, SLO: slo},
	} {
		r, ok := ResultOf(&o)
		got := fmt.Sprint(ok)
		if ok {
			got += map[bool]string{true: " {failed}"}[r.Failed] + map[bool]string{true: " {met}"}[r.Met] + map[bool]string{true: " {missed}"}[!r.Met && !r.Failed]
		}
		if !strings.HasPrefix(want, got) {
			t.Errorf("%s: %s", want, got)
		}
	}
}

// TestObserveUnderRace: ends come from many goroutines while decisions are made.
func TestObserveUnderRace(t *testing.T) {
	e := ab(t, Options{Guardrails: DefaultGuardrails()}, 0.5, 0.5)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			w := newWorld(g)
			w.errors[1] = 0.5
			for range 2000 {
				e.Observe(w.next())
				_ = e.Status()
			}
		})
	}
	for range 2000 {
		ask(t, e, t0, "")
	}
	wg.Wait()
	if e.Status().Trip == nil {
		t.Error("half of all failed and nothing happened")
	}
}

func TestTimesAreThinnedEvenly(t *testing.T) {
	var s sums
	for i := range 5000 {
		s.add(&Result{TTFT: time.Duration(i+1) * time.Millisecond})
	}
	if n := len(s.ttfts); n < mostTTFTs/2 || n > mostTTFTs || s.seen != 5000 {
		t.Errorf("%d kept of %d", n, s.seen)
	}
	if p := s.p90(); math.Abs(p-4.5) > 0.03 {
		t.Errorf("p90 of 1 to 5000 ms: %v s", p)
	}
}
