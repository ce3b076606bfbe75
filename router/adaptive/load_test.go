package adaptive

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/presage-router/presage/router"
)

func TestLoadScorer(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		requests []int32
		gaps     []time.Duration
		want     []float64
	}{
		"idle":                  {[]int32{0, 0, 0}, []time.Duration{10 * ms, 20 * ms, 0}, []float64{1, 1, 1}},
		"nothing known: counts": {[]int32{10, 5, 0}, []time.Duration{0, 0, 0}, []float64{0, 0.5, 1}},
		"half the speed":        {[]int32{10, 5, 10}, []time.Duration{10 * ms, 20 * ms, 20 * ms}, []float64{0.5, 0.5, 0}},
		"unknown is the mean":   {[]int32{10, 10, 10}, []time.Duration{10 * ms, 0, 30 * ms}, []float64{2. / 3, 1. / 3, 0}},
		"nonsense":              {[]int32{-5, 10, 10}, []time.Duration{-ms, 10 * ms, 10 * ms}, []float64{1, 0, 0}},
	} {
		s := states(4)
		for i := range c.requests {
			s[i].Requests, s[i].ITL = c.requests[i], c.gaps[i]
		}
		s[3].Requests, s[3].ITL = 1000, time.Second
		q := newQuery(s)
		q.Keep[3] = false
		out := make([]float64, 4)
		LoadScorer{}.Score(q, q.Keep, out)
		if diff := cmp.Diff(c.want, out[:3], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestLoadOutweighsAHitWhereWorkSpreads is the tie between two figures of [Defaults].
func TestLoadOutweighsAHitWhereWorkSpreads(t *testing.T) {
	p := policy(t)
	top := p.ladder[rungs]
	load, affinity := 0.0, 0.0
	for i, part := range p.opts.Scorers {
		switch {
		case part.Scorer.Name() == "load":
			load = top.weights[i]
		case part.Scorer.Category() == router.Affinity:
			affinity += top.weights[i]
		}
	}
	if !(load > affinity) {
		t.Errorf("load %v, affinity %v", load, affinity)
	}
}
