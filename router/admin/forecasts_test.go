package admin

import (
	"math"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/predictor"
)

// foreseen is a completed request that was foretold as tests like it: TTFT 100, 150 and 300 ms, ITL 10, 12 and 20 ms.
func foreseen(ttft, itl time.Duration) *features.Observation {
	return &features.Observation{
		Model: "llama-3.1-8b", Stream: true, Endpoint: "h100-1", Picked: "h100-1", Propensity: 1, Cause: fleet.Complete, Status: 200,
		Fore: features.Forecast{
			TTFT: features.Prediction{Mean: .11, P50: .1, P90: .15, P99: .3}, ITL: features.Prediction{Mean: .01, P50: .01, P90: .012, P99: .02},
		},
		TTFT: ttft, ITL: itl, E2E: time.Second,
	}
}

// Forecasts are compared with what happened: errors, coverage and bias.
func TestForecastMetrics(t *testing.T) {
	c := newCounted(t, 1)
	if page := c.page(); strings.Contains(page, "presage_forecast_bias_ratio") || strings.Contains(page, "presage_forecast_learned_total") {
		t.Error("the page tells what is not known yet")
	}
	c.m.Observe(foreseen(80*time.Millisecond, 11*time.Millisecond))  // TTFT within P50, 25 % too long; ITL within P90
	c.m.Observe(foreseen(200*time.Millisecond, 40*time.Millisecond)) // TTFT within P99, 50 % too short; ITL beyond all
	draw := foreseen(100*time.Millisecond, 0)
	draw.Propensity = 0.01
	c.m.Observe(draw)
	c.want(t,
		`presage_foretold_ttft_seconds_bucket{model="llama-3.1-8b",le="0.15"} 3`,
		`presage_foretold_ttft_seconds_bucket{model="llama-3.1-8b",le="0.075"} 0`,
		`presage_foretold_itl_seconds_count{model="llama-3.1-8b"} 2`,
		`presage_forecast_checked_total{target="ttft"} 3`,
		`presage_forecast_checked_total{target="itl"} 2`,
		`presage_forecast_covered_total{quantile="0.5",target="ttft"} 2`,
		`presage_forecast_covered_total{quantile="0.9",target="ttft"} 2`,
		`presage_forecast_covered_total{quantile="0.99",target="ttft"} 3`,
		`presage_forecast_covered_total{quantile="0.9",target="itl"} 1`,
		`presage_forecast_covered_total{quantile="0.99",target="itl"} 1`,
		`presage_forecast_error_ratio_bucket{split="chosen",target="ttft",le="0.2"} 0`,
		`presage_forecast_error_ratio_bucket{split="chosen",target="ttft",le="0.3"} 1`,
		`presage_forecast_error_ratio_bucket{split="chosen",target="ttft",le="0.75"} 2`,
		`presage_forecast_error_ratio_count{split="explored",target="ttft"} 1`,
		`presage_forecast_drifting{target="ttft"} 0`,
	)
}

// What tells nothing of the forecast is not compared: answers at once, failures, requests that went elsewhere.
func TestForecastsThatCannotBeChecked(t *testing.T) {
	c := newCounted(t, 1)
	for _, spoil := range []func(*features.Observation){
		func(o *features.Observation) { o.Stream = false },
		func(o *features.Observation) { o.Cause = fleet.ClientGone },
		func(o *features.Observation) { o.Status = 503 },
		func(o *features.Observation) { o.Endpoint = "h100-2" },
		func(o *features.Observation) { o.Fore = features.Forecast{} },
		func(o *features.Observation) { o.TTFT, o.ITL = 0, 0 },
	} {
		o := foreseen(100*time.Millisecond, 10*time.Millisecond)
		spoil(o)
		c.m.Observe(o)
	}
	c.want(t, `presage_forecast_checked_total{target="ttft"} 0`, `presage_forecast_checked_total{target="itl"} 0`)
}

// The bias tells the side of the errors; a lasting shift shows as drift, and no more once it is over.
func TestForecastBiasAndDrift(t *testing.T) {
	c := newCounted(t, 1)
	run := func(n int, centre float64) (alarm bool) {
		for i := range n {
			c.m.Observe(foreseen(time.Duration(centre*(1+0.1*float64(i%3-1))*float64(time.Second)), 0))
			_, drifting, _ := c.m.foretold.ttft.state()
			alarm = alarm || drifting
		}
		return alarm
	}
	if run(1000, .1) {
		t.Error("drift without a change")
	}
	if bias, _, _ := c.m.foretold.ttft.state(); math.Abs(bias-1) > 0.01 {
		t.Errorf("bias %v of right forecasts", bias)
	}
	if !run(200, .2) {
		t.Error("times doubled without drift")
	}
	run(300, .2)
	if bias, _, _ := c.m.foretold.ttft.state(); math.Abs(bias-.5) > 0.02 {
		t.Errorf("bias %v of forecasts that are half the truth", bias)
	}
	run(2*driftLasts, .1)
	run(driftLasts, .1)
	if _, drifting, _ := c.m.foretold.ttft.state(); drifting {
		t.Error("drift does not end")
	}
}

// How the learner is doing is read when the page is asked for.
func TestLearnerMetrics(t *testing.T) {
	var l Learning
	reg := telemetry.NewRegistry("presage", telemetry.Build{Version: "v1"})
	m, err := NewMetrics(MetricsOptions{Registry: reg, Fleet: pool(t, 1), Learner: func() Learning { return l }})
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{m: m, reg: reg}
	l.Generation, l.Overrun = 7, 3
	l.Counts.First, l.Counts.Gap, l.Counts.Steps = 10, 9, 40
	l.Counts.Dropped[predictor.OtherModel] = 2
	l.Classes = []predictor.ClassReport{
		{Class: unique.Make(fleet.Class{Model: "llama\n8b", GPU: "H100", Engine: "vllm", TP: 2}), Answer: 120, Trust: .9},
		{Trust: math.NaN()},
	}
	l.Classes[0].Targets[predictor.TTFT].Champion = 6
	l.Classes[0].Targets[predictor.ITL].Fallback = true
	m.BadUsage()
	name := `class="llama\\n8b H100 vllm tp2"`
	c.want(t,
		`presage_forecast_learned_total{target="ttft"} 10`, `presage_forecast_learned_total{target="itl"} 9`, `presage_forecast_learned_total{target="step"} 40`,
		`presage_observations_dropped_total{reason="usage"} 1`, `presage_observations_dropped_total{reason="overrun"} 3`,
		`presage_observations_dropped_total{reason="other_schema"} 2`, `presage_observations_dropped_total{reason="moved"} 0`,
		`presage_forecast_champion_generation 7`,
		`presage_forecast_champion_info{`+name+`,kind="trees",target="ttft",version="none"} 1`,
		`presage_forecast_champion_info{`+name+`,kind="prior",target="itl",version="none"} 1`,
		`presage_forecast_fallback{`+name+`,target="itl"} 1`, `presage_forecast_fallback{`+name+`,target="ttft"} 0`,
		`presage_forecast_answer_tokens{class="unknown"} 0`,
		`presage_forecast_prefix_trust_ratio{`+name+`} 0.9`,
	)
	if strings.Contains(c.page(), "NaN") {
		t.Error("the page shows what is not known")
	}
	l.Model, l.Files = "v3", map[string]uint64{"restored": 2, "refused": 1}
	c.want(t, `presage_forecast_champion_info{`+name+`,kind="trees",target="ttft",version="v3"} 1`,
		`presage_model_files_total{result="restored"} 2`, `presage_model_files_total{result="refused"} 1`)
}

func BenchmarkObserveMetrics(b *testing.B) {
	c := newCounted(b, 1)
	o := foreseen(80*time.Millisecond, 11*time.Millisecond)
	b.ReportAllocs()
	for b.Loop() {
		c.m.Observe(o)
	}
}

func BenchmarkObserveMetricsUnforetold(b *testing.B) {
	c := newCounted(b, 1)
	o := foreseen(80*time.Millisecond, 11*time.Millisecond)
	o.Fore = features.Forecast{}
	b.ReportAllocs()
	for b.Loop() {
		c.m.Observe(o)
	}
}
