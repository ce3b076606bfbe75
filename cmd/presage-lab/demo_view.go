package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/demo"
	"github.com/presage-router/presage/lab/gateway"
	"github.com/presage-router/presage/lab/load"
)

// demoView shows a demo on a terminal: what runs on stderr, a row for each policy on stdout.
type demoView struct {
	t     *terminal.Terminal
	cfg   *demo.Config
	width int // of the column of names
}

// Ready shows what was started.
func (v *demoView) Ready(s demo.Setup) {
	line := func(name, what string, took time.Duration) {
		v.t.Note("%-10s %-55s  ready in %.1f s", name, what, took.Seconds())
	}
	line("engines", s.Engines, s.TookEngines)
	service := "presage on " + s.Addresses.ExtProc
	if s.Admin != "" {
		service += ", UI http://" + s.Admin
	}
	line("service", service, s.TookService)
	kind := "built in, speaks ext_proc (no Envoy given)"
	if v.cfg.Envoy != "" {
		kind = "Envoy, " + v.cfg.Envoy
	}
	if v.cfg.Destination == gateway.OriginalDst {
		kind += ", original destination"
	}
	line("gateway", kind+"  "+s.Addresses.Gateway, s.TookGateway)
	w := v.cfg.Workload
	if v.cfg.Speed == 1 {
		v.t.Note("%-10s %s, %s per policy, same arrivals", "load", w.About, length(w.Duration))
		return
	}
	v.t.Note("%-10s %s, first %s in %s per policy, same arrivals; engines %g times faster too, figures as in life",
		"load", w.About, length(w.Duration), length(time.Duration(float64(w.Duration)/v.cfg.Speed)), v.cfg.Speed)
}

// length writes a duration as 20 s or 10 min.
func length(d time.Duration) string {
	if m := d.Minutes(); m >= 2 {
		return fmt.Sprintf("%.3g min", m)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// Progress shows how far a policy is.
func (v *demoView) Progress(policy string, elapsed, total time.Duration, s load.Score, f demo.Accuracy) {
	line := fmt.Sprintf("%-10s %s  %s  %.0f s", "", policy, v.t.Bar(elapsed.Seconds()/total.Seconds(), 16), elapsed.Seconds())
	if s.OK > 0 {
		line += fmt.Sprintf("   TTFT p50 %s  in SLO %s", milliseconds(s.TTFTP50), percent(s.Attainment))
	}
	if f.Compared > 0 {
		line += fmt.Sprintf("  forecasts off by %s", percent(f.TTFT))
	}
	v.t.Progress(time.Now(), line)
}

// Finished prints the policy's row, after the head of the table if it is the first.
func (v *demoView) Finished(policy string, s load.Score, failures []error) {
	if v.width == 0 {
		for _, name := range v.cfg.Policies {
			v.width = max(v.width, len(name))
		}
		v.t.Result("%s", v.t.Paint(terminal.Bold, fmt.Sprintf("%-*s  %8s  %8s  %8s  %8s  %8s  %6s  %6s",
			v.width, "POLICY", "REQUESTS", "TTFT p50", "p90", "ITL p50", "GOODPUT", "IN SLO", "CACHED")))
	}
	v.t.Result("%-*s  %8d  %8s  %8s  %8s  %8s  %6s  %6s", v.width, policy, s.Requests,
		milliseconds(s.TTFTP50), milliseconds(s.TTFTP90), fine(s.ITLP50), fmt.Sprintf("%.1f/s", s.Goodput), percent(s.Attainment), percent(s.HitRatio))
	for _, err := range failures {
		v.t.Note("%s: %d of %d requests failed: %v", policy, s.Requests-s.OK, s.Requests, err)
	}
}

// Forecasts prints how far forecasts were off, below the table.
func (v *demoView) Forecasts(a demo.Accuracy) {
	if a.Compared == 0 {
		return
	}
	v.t.Result("forecasts  TTFT %s off in the mean, ITL %s, 90 %% quantiles held in %s (%s requests under all",
		percent(a.TTFT), percent(a.ITL), percent(a.Coverage90), grouped(a.Compared))
	v.t.Result("           policies; each began with a fresh learner, its first third is not counted)")
}

func milliseconds(s float64) string {
	if math.IsNaN(s) {
		return "-"
	}
	return grouped(int(math.Round(s*1e3))) + " ms"
}

func fine(s float64) string {
	if math.IsNaN(s) {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", s*1e3)
}

func percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", share*100)
}

// grouped writes thousands apart, as 1,310.
func grouped(n int) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && r != '-' && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// demoJSON is the result of a demo for programs. What has no value is null.
type demoJSON struct {
	Requests int                  `json:"requests"`
	OK       int                  `json:"ok"`
	Failed   int                  `json:"failed"`
	Policies map[string]scoreJSON `json:"policies"`

	Predictor predictorJSON `json:"predictor"`
}

type predictorJSON struct {
	TTFT       *float64 `json:"ttft_mape"`
	ITL        *float64 `json:"itl_mape"`
	Coverage90 *float64 `json:"coverage90"`
	Requests   int      `json:"requests"`
}

type scoreJSON struct {
	Requests        int      `json:"requests"`
	OK              int      `json:"ok"`
	TTFTP50         *float64 `json:"ttft_p50_ms"`
	TTFTP90         *float64 `json:"ttft_p90_ms"`
	TTFTP99         *float64 `json:"ttft_p99_ms"`
	ITLP50          *float64 `json:"itl_p50_ms"`
	E2EMean         *float64 `json:"e2e_mean_ms"`
	Goodput         float64  `json:"goodput_rps"`
	Attainment      *float64 `json:"slo_attainment"`
	HitRatio        *float64 `json:"hit_ratio"`
	TokensPerSecond float64  `json:"tokens_per_s"`
}

func newDemoJSON(r *demo.Result) demoJSON {
	requests, ok := r.Totals()
	out := demoJSON{Requests: requests, OK: ok, Failed: requests - ok, Policies: make(map[string]scoreJSON, len(r.Scores))}
	for name, s := range r.Scores {
		out.Policies[name] = newScoreJSON(&s)
	}
	a := &r.Accuracy
	out.Predictor = predictorJSON{TTFT: number(a.TTFT), ITL: number(a.ITL), Coverage90: number(a.Coverage90), Requests: a.Compared}
	return out
}

func newScoreJSON(s *load.Score) scoreJSON {
	return scoreJSON{
		Requests: s.Requests, OK: s.OK,
		TTFTP50: number(s.TTFTP50 * 1e3), TTFTP90: number(s.TTFTP90 * 1e3), TTFTP99: number(s.TTFTP99 * 1e3),
		ITLP50: number(s.ITLP50 * 1e3), E2EMean: number(s.E2EMean * 1e3),
		Goodput: s.Goodput, Attainment: number(s.Attainment), HitRatio: number(s.HitRatio), TokensPerSecond: s.TokensPerSecond,
	}
}

func number(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

var _ demo.View = (*demoView)(nil)
