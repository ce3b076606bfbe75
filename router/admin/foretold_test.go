package admin

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

// soonest picks the least foretold TTFT.
type soonest struct{}

func (soonest) Name() string { return "soonest" }

func (soonest) Route(q *router.Query, d *router.Decision) error {
	values := d.Why.Size("ms", soonestTerms, len(q.Keep))
	d.Index, d.Propensity = 0, 1
	for i, f := range q.Forecasts() {
		d.Why.Totals[i] = 1e3 * f.TTFT.P50
		values[i] = d.Why.Totals[i]
		if d.Why.Totals[i] < d.Why.Totals[d.Index] {
			d.Index = i
		}
	}
	d.Judge(q, q.Keep)
	return nil
}

var soonestTerms = []string{"queue"}

// forecasting gives the site's router the generic priors and a policy that uses them.
func forecasting(t *testing.T, endpoints int) *site {
	s := newSite(t, endpoints, nil)
	s.router = router.New(router.Options{Fleet: pool(t, endpoints), Policy: soonest{}, Recorder: s.ring, Observer: s.ring, Seed: 11,
		Prefixes: held{}, Forecast: new(predictor.Handle)})
	return s
}

// TestGoldenExplainForecasts is the text an operator gets where forecasts decided, or only stood by.
func TestGoldenExplainForecasts(t *testing.T) {
	s := forecasting(t, 4)
	var out strings.Builder
	show := func(what string, id router.ID) {
		out.WriteString("# " + what + "\n")
		if err := s.ring.Get(id).Text(&out, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n")
	}
	show("still running", s.run(t, 0, fleet.Open))
	show("later than foretold", s.run(t, 480*time.Millisecond, fleet.Complete))
	show("sooner than foretold", s.run(t, 50*time.Millisecond, fleet.Complete))
	show("client gone", s.run(t, 50*time.Millisecond, fleet.ClientGone))
	s.router.SetPolicy(policy(t, "round-robin"))
	show("a policy that does not look at forecasts", s.run(t, 400*time.Millisecond, fleet.Complete))
	golden(t, "explain-forecasts.txt", out.String())
}

// What is foretold at the decision is the record's forecast, is kept for every candidate, and stands beside
// what happened once that is known.
func TestForecastsAreKept(t *testing.T) {
	s := forecasting(t, 4)
	var seen features.Observation
	var asked []features.Forecast
	record := recorder(func(_ router.ID, q *router.Query, _ *router.Decision) {
		asked = append(asked[:0], q.Foretold()...)
	})
	s.router = router.New(router.Options{
		Fleet: s.router.Fleet(), Policy: soonest{}, Recorder: router.Recorders{s.ring, record},
		Observer: router.Observers{s.ring, observer(func(o *features.Observation) { seen = *o })}, Prefixes: held{}, Forecast: new(predictor.Handle),
	})
	id := s.run(t, 480*time.Millisecond, fleet.Complete)
	x := s.ring.Get(id)
	near := func(what string, ms float64, s float32) {
		t.Helper()
		if !(math.Abs(ms/1e3-float64(s)) <= 5e-4*float64(s)) {
			t.Errorf("%s: %v ms shown, %v s foretold", what, ms, s)
		}
	}
	if len(asked) != 4 || len(x.Candidates) != 4 || x.Foretold == nil || x.Outcome.Errors == nil || !seen.Fore.TTFT.Known() {
		t.Fatalf("%d asked, %+v", len(asked), x)
	}
	near("picked TTFT p90", x.Foretold.TTFT.P90, seen.Fore.TTFT.P90)
	near("picked ITL p99", x.Foretold.ITL.P99, seen.Fore.ITL.P99)
	for i, c := range x.Candidates {
		for _, f := range []struct {
			name string
			got  *Quantiles
			want features.Prediction
		}{{"TTFT", c.Foretold.TTFT, asked[i].TTFT}, {"ITL", c.Foretold.ITL, asked[i].ITL}} {
			near(c.Endpoint+" "+f.name+" p50", f.got.P50, f.want.P50)
			near(c.Endpoint+" "+f.name+" p90", f.got.P90, f.want.P90)
			near(c.Endpoint+" "+f.name+" p99", f.got.P99, f.want.P99)
		}
		if math.Abs(float64(c.Total)-float64(c.Terms[0])) > 0.5 {
			t.Errorf("%s: the terms do not add up to the total", c.Endpoint)
		}
	}
	e := x.Outcome.Errors.TTFT
	if e.Actual != 480 || e.Foretold != x.Foretold.TTFT.P50 || math.Abs(e.Ratio-480/e.Foretold) > 1e-3 {
		t.Errorf("TTFT error %+v", e)
	}
	var back Explained
	b, err := json.Marshal(x)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || *back.Candidates[3].Foretold.ITL != *x.Candidates[3].Foretold.ITL {
		t.Errorf("%v, %s", err, b)
	}
	if gone := s.ring.Get(s.run(t, 100*time.Millisecond, fleet.ClientGone)); gone.Foretold == nil || gone.Outcome.Errors != nil {
		t.Errorf("a request that was given up tells how good its forecast was: %+v", gone.Outcome.Errors)
	}
}

type observer func(o *features.Observation)

func (f observer) Observe(o *features.Observation) { f(o) }

// Times packed into 16 bits keep their order and 0.03 %.
func TestBriefTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	last, packed := float32(0), uint32(0)
	for _, v := range []float32{0, -1, float32(math.NaN())} {
		if brief(v) != 0 || long(brief(v)) != 0 {
			t.Errorf("%v is something", v)
		}
	}
	for v := float32(20e-6); v < 60000; v *= 1 + rng.Float32()/10 {
		b := brief(v)
		if b > math.MaxUint16 || b < packed || math.Abs(float64(long(b)/v-1)) > 3e-4 {
			t.Errorf("%v after %v: %d, %v", v, last, b, long(b))
		}
		last, packed = v, b
	}
	for v, want := range map[float32]float32{1e-9: 1.0 / (1 << 16), float32(math.Inf(1)): 65504, 1e6: 65504} {
		if got := long(brief(v)); math.Abs(float64(got/want-1)) > 1e-3 {
			t.Errorf("%v became %v", v, got)
		}
	}
}

// TestForecastsAreKeptWithoutAllocation under the decision lock.
func TestForecastsAreKeptWithoutAllocation(t *testing.T) {
	ring := NewRing(RingOptions{})
	var allocs float64
	measure := recorder(func(id router.ID, q *router.Query, d *router.Decision) {
		if len(q.Foretold()) != 100 {
			t.Fatal("nothing foretold")
		}
		ring.Record(id, q, d)
		allocs = testing.AllocsPerRun(100, func() { ring.Record(id, q, d) })
	})
	r := router.New(router.Options{Fleet: pool(t, 100), Policy: soonest{}, Recorder: measure, Forecast: new(predictor.Handle)})
	if err := r.Route(&router.Ask{Now: t0, Req: prompt(4000)}, &router.Flight{}); err != nil {
		t.Fatal(err)
	}
	if allocs != 0 {
		t.Errorf("%v allocations per decision", allocs)
	}
}
