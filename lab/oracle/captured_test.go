package oracle

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFiellerCovers: of many samples of paired gains the interval holds the true share about as often as
// it says, where the denominator is well above 0 and where it is not far from it.
func TestFiellerCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, room := range []float64{20, 6} {
		const trials, seeds, share = 4000, 8, 0.9
		held, unbounded := 0, 0
		for range trials {
			var x, y []float64
			for range seeds {
				common := 3 * rng.NormFloat64()
				y = append(y, room+common+2*rng.NormFloat64())
				x = append(x, share*room+common+2*rng.NormFloat64())
			}
			low, high, ok := fieller(x, y, 0.95)
			if !ok {
				unbounded++
				continue
			}
			if low <= share && share <= high {
				held++
			}
		}
		if c := float64(held+unbounded) / trials; math.Abs(c-0.95) > 0.015 {
			t.Errorf("room %v: the interval holds the share %.3f of the time, want 0.95", room, c)
		}
	}
}

func TestCapture(t *testing.T) {
	rr := []float64{50, 52, 48, 50}
	c := capture("p", "clairvoyant", []float64{68, 71, 66, 69}, []float64{70, 72, 68, 70}, rr)
	if c.Refused != "" || math.Abs(*c.Share-18.5/20) > 1e-9 || c.CI95[0] > *c.Share || c.CI95[1] < *c.Share || c.CI95[0] < 0.85 || c.CI95[1] > 1 {
		t.Errorf("%+v, share %v, interval %v", c, *c.Share, c.CI95)
	}
	for want, c := range map[string]Captured{
		"not enough data: 1 of 2 paired seeds needed":                                  capture("p", "bound", rr[:1], rr[:1], rr[:1]),
		"bound gains 4.0 points over round robin: below 5":                             capture("p", "bound", rr, []float64{54, 56, 52, 54}, rr),
		"gain of hindsight over round robin is not significantly above 0 over 2 seeds": capture("p", "hindsight", []float64{50, 50}, []float64{50, 90}, []float64{50, 50}),
	} {
		if c.Share != nil || c.CI95 != nil || !strings.Contains(c.Refused, want) {
			t.Errorf("%+v, want %q", c, want)
		}
	}
}

const crowded = `
name: crowded
about: two kinds of engines and prefixes, more than round robin can bear
origin: this test
expects: nothing
duration: 12s
warmup: 2s
loads: [1]
fleet:
  - {count: 1, gpu: H100, model: llama-3.1-8b, tp: 1}
  - {count: 2, gpu: L40S, model: llama-3.1-8b, tp: 1}
slo: {ttft: 300ms, itl: 30ms}
traffic:
  - class: a
    arrivals: [{poisson: {rate: 12}}]
    prefix: [{groups: 6, tokens: 3000}]
    prompt: 500
    output: {lognormal: {mean: 60, sigma: 0.5, max: 300}}
`

// TestStudy: references lie where they must, shares are of them, equal seeds give equal results.
func TestStudy(t *testing.T) {
	s := &Study{
		Arena: arena(t, crowded), Load: 1, Seeds: []uint64{1, 2, 3}, Policies: []string{"predictive", "round-robin"},
		References: []string{ByClairvoyant, ByHindsight, ByBound}, Replays: 40, Workers: 2,
	}
	r, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	a := r.Attainment
	if a[ByHindsight] < a[ByClairvoyant] || a[ByHindsight] < a["predictive"] || a[ByBound] < a[ByHindsight] || a[ByClairvoyant] < a["round-robin"]+5 {
		t.Errorf("attainments %v", a)
	}
	if len(r.Captured) != 6 || r.Captured[0].Policy != "predictive" || r.Captured[0].Reference != ByClairvoyant {
		t.Fatalf("%+v", r.Captured)
	}
	if c := r.Captured[0]; c.Refused == "" && math.Abs(*c.Share-(a["predictive"]-a["round-robin"])/(a[ByClairvoyant]-a["round-robin"])) > 1e-9 {
		t.Errorf("share %v of attainments %v", *c.Share, a)
	}
	if c := r.Captured[3]; c.Gain != 0 || c.Refused == "" && *c.Share != 0 {
		t.Errorf("round robin captures %+v", c)
	}
	want := ByClairvoyant
	if a["predictive"] > a[ByClairvoyant] {
		want = ByHindsight
	}
	if r.Reference["predictive"] != want || r.Reference["round-robin"] != ByClairvoyant {
		t.Errorf("references %v for attainments %v", r.Reference, a)
	}
	again, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range r.Attainment {
		if again.Attainment[name] != v {
			t.Errorf("%s attains %v, and %v", name, v, again.Attainment[name])
		}
	}
}

func TestImpossibleStudies(t *testing.T) {
	a := arena(t, crowded)
	for want, s := range map[string]Study{
		"no reference; name one of clairvoyant": {},
		`reference "oracle" unknown`:            {References: []string{"oracle"}},
		`"nobody" unknown`:                      {References: []string{ByBound}, Policies: []string{"nobody"}},
	} {
		s.Arena, s.Load, s.Seeds = a, 1, []uint64{1}
		if _, err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	s := Study{Arena: a, Load: 1, Seeds: []uint64{1}, References: []string{ByBound}}
	if r, err := s.Run(ctx); r != nil || err == nil {
		t.Errorf("interrupted: %v, %v", r, err)
	}
}
