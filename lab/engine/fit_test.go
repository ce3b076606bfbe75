package engine

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFitRecoversAnEngine fits iterations of a known engine, with noise and some wild outliers.
func TestFitRecoversAnEngine(t *testing.T) {
	e := h100(t, func(c *Config) { c.Profile = Profile{Name: "bare", Step: 1e-6} })
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func() (Pass, float64) {
		p := Pass{Decodes: rng.IntN(200)}
		p.DecodeKV = p.Decodes * (100 + rng.IntN(2000))
		var chunks [][2]int
		if rng.IntN(3) == 0 || p.Decodes == 0 {
			q, ctx := 1+rng.IntN(8000), rng.IntN(8000)
			p.Prefills, p.PrefillTokens, p.PrefillKV = 1, q, ctx
			chunks = append(chunks, [2]int{q, ctx})
		}
		return p, e.StepTime(p.Decodes, p.DecodeKV, chunks...)
	}
	var passes []Pass
	for i := range 4000 {
		p, us := draw()
		p.Time = us * math.Exp(0.02*rng.NormFloat64())
		if i%50 == 0 {
			p.Time *= 10
		}
		passes = append(passes, p)
	}
	c, err := Fit(passes)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for range 1000 {
		p, us := draw()
		worst = max(worst, math.Abs(c.PassTime(&p)/us-1))
	}
	if worst > 0.08 {
		t.Errorf("worst error %.3f", worst)
	}
	want := e.Config().Coefs
	if r := c.DecodeKV / want.DecodeKV; r < 0.9 || r > 1.1 {
		t.Errorf("time per context token %v, want %v", c.DecodeKV, want.DecodeKV)
	}
	if r := c.PrefillQuad / want.PrefillQuad; r < 0.8 || r > 1.25 {
		t.Errorf("attention of prefill %v, want %v", c.PrefillQuad, want.PrefillQuad)
	}
	c.GPU, c.Model, c.TP, c.DType, c.KVBlocks = "X", "fitted", 1, "bfloat16", 1000
	if _, err := New(Config{Coefs: c}); err != nil {
		t.Errorf("the fitted engine does not run: %v", err)
	}
}

func TestFitRefuses(t *testing.T) {
	good := Pass{Decodes: 3, DecodeKV: 100, Time: 1000}
	for want, passes := range map[string][]Pass{
		"at least 100":       {good},
		"pass 1: impossible": {good, {Decodes: 1, Time: math.NaN()}},
		"pass 0: impossible": {{Time: 100}},
	} {
		if _, err := Fit(passes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
