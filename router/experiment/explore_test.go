package experiment

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// costly tells a cost for each endpoint and picks one of its own choice.
type costly struct {
	costs []float32
	pick  int
	p     float64
}

func (costly) Name() string { return "costly" }

func (c costly) Route(_ *router.Query, d *router.Decision) error {
	d.Why.Size("ms", []string{"queue"}, len(c.costs))
	copy(d.Why.Totals, c.costs)
	copy(d.Why.Values, c.costs)
	d.Index, d.Propensity = c.pick, c.p
	return nil
}

// query is a bare query over n endpoints with forecasts of 1, 2, 3, … seconds.
func query(t *testing.T, n int, rng *rand.Rand) *router.Query {
	var snap fleet.Snapshot
	pool(t, n).Snapshot(t0, &snap)
	q := &router.Query{Now: t0, Req: &request.Request{PromptTokens: 10}, Snap: &snap, Hits: make([]int32, n), Rand: rng}
	fore := make([]features.Forecast, n)
	for i := range n {
		q.Keep = append(q.Keep, true)
		fore[i].TTFT.Mean = float32(i + 1)
	}
	q.Suppose(fore)
	return q
}

// TestExploring: draws come as often as their propensity says, from the pick and the next best.
func TestExploring(t *testing.T) {
	costs := []float32{60, 10, 20, 50, 40, 30, 15}
	for _, pick := range []int{1, 2} { // the cheapest, and one that a margin preferred
		e, err := NewExplorer(costly{costs, pick, 1}, 0.2)
		if err != nil {
			t.Fatal(err)
		}
		q := query(t, len(costs), rand.New(rand.NewPCG(1, 2)))
		q.Keep[6] = false
		want := map[int]int{1: 0, 2: 1, 5: 2, 4: 3} // rank by endpoint
		if pick == 2 {
			want = map[int]int{2: 0, 1: 1, 5: 2, 4: 3}
		}
		count := map[int]float64{}
		const n = 20000
		for range n {
			var d router.Decision
			d.Reset()
			if err := e.Route(q, &d); err != nil {
				t.Fatal(err)
			}
			rank, ok := want[d.Index]
			p := 0.05
			if d.Index == pick {
				p = 0.85
			}
			if !ok || d.Choice.Among != 4 || d.Choice.Rank != rank || math.Abs(d.Propensity-p) > 1e-12 || math.Abs(float64(d.Why.Drawn[d.Index])-p) > 1e-6 {
				t.Fatalf("%+v", d)
			}
			if d.Choice.TTFT[rank] != float32(d.Index+1) {
				t.Fatalf("forecasts %v for rank %d, endpoint %d", d.Choice.TTFT, rank, d.Index)
			}
			if explored := d.Index != pick; explored != (d.Why.Reason == router.ByExplore) || explored && (len(d.Fallback) == 0 || d.Fallback[0] != pick) {
				t.Fatalf("%+v", d)
			}
			count[d.Index]++
		}
		for i := range want {
			p := 0.05
			if i == pick {
				p = 0.85
			}
			if sd := math.Sqrt(p * (1 - p) / n); math.Abs(count[i]/n-p) > 4*sd {
				t.Errorf("endpoint %d was drawn in a share of %.4f, told %.2f", i, count[i]/n, p)
			}
		}
	}
}

// TestNothingToExplore: what cannot be explored is left as it is.
func TestNothingToExplore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	only := query(t, 3, rng)
	only.Keep[0], only.Keep[2] = false, false
	for name, c := range map[string]struct {
		in router.Policy
		q  *router.Query
	}{
		"one candidate":    {costly{[]float32{1, 2, 3}, 1, 1}, only},
		"draws for itself": {costly{[]float32{1, 2, 3}, 1, 0.5}, query(t, 3, rng)},
		"no explanation":   {fixed{at: 1}, query(t, 3, rng)},
	} {
		e, err := NewExplorer(c.in, MostExplore)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			var d router.Decision
			d.Reset()
			if err := e.Route(c.q, &d); err != nil || d.Index != 1 || d.Choice != (features.Choice{}) {
				t.Fatalf("%s: %+v, %v", name, d, err)
			}
		}
	}
	for _, share := range []float64{0, -1, 0.51, math.NaN()} {
		if _, err := NewExplorer(fixed{}, share); err == nil || !strings.Contains(err.Error(), "share") {
			t.Errorf("a share of %v: %v", share, err)
		}
	}
}
