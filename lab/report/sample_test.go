package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/internal/stat"
)

// difference is a synthetic one: n pairs that scatter by sd about a mean.
func difference(mean, sd, base float64, n int, seed uint64) Difference {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	m, s := stat.Mean(x), 1.0
	if n > 1 {
		s = stat.SD(x)
	}
	d := Difference{Base: Value(base), SD: Value(sd), N: n, P: Unknown()}
	for i := range x {
		x[i] = mean + sd*(x[i]-m)/s
		d.Seeds = append(d.Seeds, Value(x[i]))
	}
	i := stat.MeanInterval(x, 0.95)
	d.Interval = Interval{Value(i.Mean), Value(i.Low), Value(i.High)}
	return d
}

// sample is a comparison with every part.
func sample() *Comparison {
	c := &Comparison{
		Scope: Scope{Scenario: "mixed-shift", Endpoints: []string{"6 H100", "2 A100"}, Seeds: 20, Requests: 1_900_000, Planned: 500, Done: 500},
		Ours:  "predictive", Against: "weighted", Primary: SustainedRate,
		Control: &Control{Policy: "always-busiest", Against: "predictive", Load: 1.2, Behind: Interval{61, 58, 64}},
		Method: Method{
			Command: "presage-lab compare --scenario mixed-shift --policies predictive,llmd-sticky-token,adaptive,weighted,round-robin --seeds 20 --sweep --report out.html",
			Version: "0.4.0", TTFTOff: SimulatorTTFT, ITLOff: SimulatorITL, RunHours: 0.2,
			Hashes: []Hash{{"scenario", "9c1e53ab77d0a1f2"}, {"engines", "0077aa11bb22cc33"}}, Notes: []string{"Knees by bisection, seed by seed."},
		},
		Refusals: []string{"Refused: requests over 32k tokens: 212 of 1.9 M. Too few to split out."},
	}
	for s := range uint64(20) {
		c.Method.Seeds = append(c.Method.Seeds, s+1)
	}
	for i, p := range []struct {
		name               string
		knee, ttft, itl    float64
		cached, cv, drop   float64
		tuning             string
		diff, sd, relative float64
	}{
		{"predictive", 44.3, .61, .0241, .71, .14, .5, "built-in prior", 0, 0, 0},
		{"llmd-sticky-token", 43.4, .64, .0238, .73, .19, .55, "llm-d v0.4 defaults", .9, 2.6, 0},
		{"adaptive", 42.1, .70, .0239, .69, .16, .6, "own defaults", 2.2, 2.4, 0},
		{"weighted", 38.9, .88, .0235, .66, .22, .8, "3/2/2 of the talk", 5.4, 2.9, 0},
		{"round-robin", 27.5, 1.9, .0228, .24, .08, .9, "", 16.8, 3.9, 0},
	} {
		c.Policies = append(c.Policies, Policy{
			Name: p.name, Sustained: Interval{Value(p.knee), Value(p.knee - 1), Value(p.knee + 1)}, Knee: Knee{Searched: true, Reached: true, Gap: .04},
			Attained: Value(.97 - .02*float64(i)), Rate: 38, TTFT90: Value(p.ttft), ITL: Value(p.itl), Cached: Value(p.cached), LoadCV: Value(p.cv), Tuning: p.tuning,
		})
		k := Curve{Policy: p.name}
		for r := 10.0; r <= 60; r += 5 {
			good := r * min(1, .985)
			if r > p.knee*.9 {
				good = p.knee*.9 + (r-p.knee*.9)*.3
			}
			if r > p.knee {
				good = p.knee*.9 - (r-p.knee)*p.drop
			}
			k.Points = append(k.Points, Rate{Value(r), Value(max(good, 5))})
		}
		c.Curves = append(c.Curves, k)
		if i > 0 {
			v := Versus{Other: p.name, Primary: difference(p.diff, p.sd, p.knee, 20, uint64(i))}
			v.Primary.P = Value(.001)
			if i == 1 {
				v.Primary.P = .14
			}
			v.Others = []Effect{
				{TTFT90, difference(-.05*float64(i), .1, p.ttft, 20, 7)}, {TTFT99, difference(-.02*float64(i), .2, 3*p.ttft, 20, 8)},
				{ITLMean, difference(.0006, .0007, p.itl, 20, 9)}, {Errors, difference(0, .0005, .001, 20, 10)}, {Fairness, difference(.002, .01, .97, 20, 11)},
			}
			c.Versus = append(c.Versus, v)
			c.Classes = append(c.Classes, Slice{By: "SLO class", Other: p.name, Name: "interactive", Difference: difference(.8*float64(i), 1.5, 90, 20, 12), Requests: 9000},
				Slice{By: "SLO class", Other: p.name, Name: "batch", Difference: difference(-.4, 1.5, 90, 20, 13), Requests: 4000})
		}
	}
	c.Captured = &Captured{Baseline: "round-robin", Reference: "best in hindsight", Possible: 23, Load: 1, Bars: []Bar{
		{"round-robin", Point(0), false}, {"weighted", Interval{.63, .58, .67}, false}, {"adaptive", Interval{.81, .77, .84}, false},
		{"predictive", Interval{.92, .9, .94}, false}, {"perfect forecast", Interval{.95, .93, .96}, true}, {"best in hindsight", Point(1), true},
	}}
	c.Reliability = &Reliability{Policy: "predictive", Load: 1, Seed: 1, Lived: .873, Curves: []Calibration{
		{"TTFT", true, []Value{.5, .9, .99}, []Value{.512, .907, .989}, 1400}, {"TTFT", false, []Value{.5, .9, .99}, []Value{.41, .86, .98}, 1400},
	}}
	t := Timeline{Policy: "adaptive", Load: 1, Seed: 1, Marks: []Mark{{60, "slow"}}}
	for i := range 8 {
		t.Engines = append(t.Engines, Series{Name: fmt.Sprintf("h100-%d", i)})
	}
	t.Weights = []Series{{Name: "prefix"}, {Name: "queue"}, {Name: "kv-usage"}}
	for k := range 60 {
		t.Times = append(t.Times, Value(2*k))
		for i := range t.Engines {
			t.Engines[i].Values = append(t.Engines[i].Values, Value(math.Abs(20+12*math.Sin(float64(k)/6+float64(i)))))
		}
		w := Value(.43)
		if k > 30 {
			w = .2
		}
		for i, v := range []Value{w, .7 - w, .3} {
			t.Weights[i].Values = append(t.Weights[i].Values, v)
		}
	}
	c.Timelines = []Timeline{t}
	return c
}

// sampleLive is a switchback of two arms.
func sampleLive() *Comparison {
	begin := time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	l := &Live{
		Unit: "block", Pairs: 60, DesignEffect: 3.4, AlwaysValid: true, AA: &AA{P: .41, N: 24, Wide: .9},
		CarryOver: &CarryOver{First: Interval{1.9, .8, 3}, Second: Interval{2.3, 1.1, 3.5}, P: .44},
		Arrivals:  []Arrival{{"predictive", 61_000, 42.1}, {"weighted", 60_100, 41.5}},
		Trips:     []Trip{{begin.Add(time.Hour), "errors", .021, .02}},
		OffPolicy: []OffPolicy{{"lmetric", "SNIPS", Interval{.31, .29, .34}, .3, 11, 5000}, {"gorgo-2d", "doubly robust", Interval{.3, .2, .4}, .01, 90, 5000}},
	}
	for i := range 120 {
		arm := "predictive"
		if (i/2+i)%2 == 1 {
			arm = "weighted"
		}
		l.Calendar = append(l.Calendar, Block{Begin: begin.Add(time.Duration(i) * 2 * time.Minute), Length: 2 * time.Minute, Washout: 30 * time.Second, Arm: arm, Requests: 1000, Met: 940})
	}
	row := func(name string, in Value) Policy {
		return Policy{Name: name, Sustained: Point(math.NaN()), Attained: in, Rate: 42, TTFT90: .4, ITL: .021, Cached: .6, LoadCV: Unknown(), Tuning: "as configured"}
	}
	return &Comparison{
		Scope: Scope{Scenario: "holdback", Endpoints: []string{"7 endpoints"}, Blocks: 120, Requests: 121_100}, Ours: "predictive", Primary: Attainment,
		Policies: []Policy{row("predictive", .952), row("weighted", .931)},
		Versus:   []Versus{{Other: "weighted", Primary: difference(2.1, 3.1, 93.1, 60, 3)}},
		Method:   Method{Command: "presage-lab ab --log traces.jsonl --report out.html", Version: "0.4.0", TTFTOff: Unknown(), ITLOff: Unknown(), RunHours: .07},
		Live:     l,
	}
}
