package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/engine"
)

// Setup is what a measurement file does not tell of its engines. The zero value is no knowledge.
type Setup struct {
	Run        string   // of the file; empty: its only one
	GPU, Model string   // names in the result; empty: as the file has them
	Limits     []Limits // of each endpoint, in order of their names; one: of all
	Unknown    Unknown  // what to try; empty: both lags and, without a limit, the usual token budgets
}

// Result is an engine fitted to a file and its errors on the rows that the fit did not see.
type Result struct {
	Engine Engine `json:"engine"`
	Errors Errors `json:"errors"`
}

// Engine is a fitted engine. Its coefficients have the form of coefs.json; kv_blocks is that of the
// setup, or so large that the cache is never full.
type Engine struct {
	engine.Coefs
	Frontend   float64 `json:"alpha0_ms"`                        // from arrival to the scheduler's queue
	Lag        int     `json:"lag"`                              // 1: asynchronous scheduling
	MaxBatched int     `json:"max_num_batched_tokens,omitempty"` // where it was fitted
}

// Slope is the time of a prefill token beyond the last knot but one, in microseconds.
func (e *Engine) Slope() float64 {
	n := len(e.Knots)
	return (e.G[n-1]-e.G[n-2])/(e.Knots[n-1]-e.Knots[n-2]) + e.PrefillLin
}

// Errors are absolute relative errors, as shares. Those that a file cannot tell are left out.
type Errors struct {
	Fitted  int      `json:"fitted"`              // rows that the fit saw
	Held    int      `json:"held"`                // rows that judge it
	Step    *float64 `json:"step_time,omitempty"` // median, of passes
	TTFT    *float64 `json:"ttft,omitempty"`      // median, of requests
	ITL     *float64 `json:"itl,omitempty"`       // median, of requests
	Windows []Window `json:"windows,omitempty"`
}

// Window is one minute of the rows that judge: errors of the quantiles over its requests, with sign.
type Window struct {
	From     float64 `json:"from_s"`
	Requests int     `json:"requests"`
	TTFT50   float64 `json:"ttft_p50"`
	TTFT90   float64 `json:"ttft_p90"`
	ITL50    float64 `json:"itl_p50"`
	ITL90    float64 `json:"itl_p90"`
}

// Calibrate fits an engine to a file of recorded passes, or of requests of one or more equal engines.
// Of passes every other one is fitted; of requests, the first half of the run.
func Calibrate(ctx context.Context, path string, s Setup) (*Result, error) {
	format, err := datasets.Detect(path)
	if err != nil {
		return nil, err
	}
	switch format {
	case datasets.FPM:
		return calibratePasses(path, s)
	case datasets.Measured, datasets.VLLMCPU:
		return calibrateRequests(ctx, path, s)
	default:
		return nil, fmt.Errorf("%s: format %s: has no steps or requests with latencies to fit to; use a file of measured, vllm-cpu or fpm", filepath.Base(path), format)
	}
}

func calibratePasses(path string, s Setup) (*Result, error) {
	records, _, err := datasets.Load[datasets.Pass](path)
	if err != nil {
		return nil, err
	}
	passes, err := choose(path, records, s.Run, func(p *datasets.Pass) string { return p.Run })
	if err != nil {
		return nil, err
	}
	f, err := FitPasses(passes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	e := Engine{Coefs: f.Coefs}
	e.name(s, passes[0].Model)
	return &Result{Engine: e, Errors: Errors{Fitted: f.Fitted, Held: f.Held, Step: known(f.Error)}}, nil
}

// name fills what the fit leaves open.
func (e *Engine) name(s Setup, model string) {
	e.GPU, e.Model = cmp.Or(s.GPU, "FITTED"), strings.ToLower(cmp.Or(s.Model, model, "fitted"))
	e.TP, e.DType = 1, "bfloat16"
	e.KVBlocks = plenty
	if len(s.Limits) > 0 && s.Limits[0].Blocks > 0 {
		e.KVBlocks = s.Limits[0].Blocks
	}
	e.KVTokens = e.KVBlocks * 16
}

func calibrateRequests(ctx context.Context, path string, s Setup) (*Result, error) {
	records, _, err := datasets.Load[datasets.Row](path)
	if err != nil {
		return nil, err
	}
	rows, err := choose(path, records, s.Run, func(r *datasets.Row) string { return r.Run })
	if err != nil {
		return nil, err
	}
	traces, err := endpoints(rows, s.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	cut := halfway(traces)
	seen := func(t, i int) bool { return traces[t].Requests[i].At.Seconds() < cut }
	f, err := FitRequests(ctx, traces, s.unknown(), seen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	e := Engine{Coefs: f.Coefs, Frontend: f.Profile.Frontend.Seconds() * 1e3, Lag: f.Profile.Lag, MaxBatched: f.Batched}
	e.name(s, rows[0].Model)
	errs, err := judge(f, traces, cut)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return &Result{Engine: e, Errors: *errs}, nil
}

// unknown is what to try.
func (s *Setup) unknown() Unknown {
	u := s.Unknown
	if len(u.Lags) == 0 {
		u.Lags = []int{0, 1}
	}
	if len(u.Batched) == 0 && !slices.ContainsFunc(s.Limits, func(l Limits) bool { return l.MaxBatched > 0 }) {
		u.Batched = budgets()
	}
	return u
}

// choose returns the records of a run; without a name, of the only one.
func choose[T any](path string, records []T, name string, of func(*T) string) ([]T, error) {
	names, runs := byRun(records, of)
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no rows to fit to", filepath.Base(path))
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return nil, fmt.Errorf("%s: %d runs, an engine is fitted to one; name it with --run: %s", filepath.Base(path), len(names), listed(names))
	case len(runs[name]) == 0:
		return nil, fmt.Errorf("%s: no run %q; there are %s", filepath.Base(path), name, listed(names))
	}
	return runs[name], nil
}

// listed joins the first names.
func listed(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// endpoints splits rows by the endpoint that answered, sorted by name, and gives each its limits.
func endpoints(rows []datasets.Row, limits []Limits) ([]Trace, error) {
	names, served := byRun(rows, func(r *datasets.Row) string { return r.Endpoint })
	slices.Sort(names)
	if len(names) == 1 && rows[0].Replicas > 1 {
		return nil, fmt.Errorf("%d replicas, and the file does not say which one served a request; an engine can be fitted to one only", rows[0].Replicas)
	}
	if len(limits) > 1 && len(limits) != len(names) {
		return nil, fmt.Errorf("%d endpoints, limits for %d; give one for all or one for each", len(names), len(limits))
	}
	traces := make([]Trace, 0, len(names))
	for i, name := range names {
		var l Limits
		if len(limits) > 0 {
			l = limits[min(i, len(limits)-1)]
		}
		t, err := NewTrace(served[name], l)
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	return traces, nil
}

// halfway is the second by which half of the requests have arrived.
func halfway(traces []Trace) float64 {
	var at []float64
	for _, t := range traces {
		for i := range t.Requests {
			at = append(at, t.Requests[i].At.Seconds())
		}
	}
	slices.Sort(at)
	if len(at) == 0 {
		return 0
	}
	return at[len(at)/2]
}

// judge simulates the whole run, as the second half begins with what the first has left, and compares
// the requests from the cut on.
func judge(f *Fit, traces []Trace, cut float64) (*Errors, error) {
	const minute = 60.0
	e := &Errors{Fitted: f.Rows}
	var ttfts, itls []float64
	windows := map[int]*samples{}
	for _, t := range traces {
		sim, err := Replay(f.Config(t.Limits), t.Requests)
		if err != nil {
			return nil, err
		}
		for i, m := range t.Measured {
			at := t.Requests[i].At.Seconds()
			if at < cut || !(m.TTFT > 0) {
				continue
			}
			e.Held++
			w := windows[int((at-cut)/minute)]
			if w == nil {
				w = &samples{}
				windows[int((at-cut)/minute)] = w
			}
			ttfts = append(ttfts, math.Abs(orFar(sim[i].TTFT)/m.TTFT-1))
			w.ttft[0], w.ttft[1] = append(w.ttft[0], orFar(sim[i].TTFT)), append(w.ttft[1], m.TTFT)
			if m.ITL > 0 {
				itls = append(itls, math.Abs(orFar(sim[i].ITL)/m.ITL-1))
				w.itl[0], w.itl[1] = append(w.itl[0], orFar(sim[i].ITL)), append(w.itl[1], m.ITL)
			}
		}
	}
	e.TTFT, e.ITL = known(stat.Median(ttfts)), known(stat.Median(itls))
	for _, k := range slices.Sorted(maps.Keys(windows)) {
		w := windows[k]
		const least = 20 // a p90 of less says nothing
		if len(w.itl[0]) < least {
			continue
		}
		t, g := w.ttft.errors(), w.itl.errors()
		e.Windows = append(e.Windows, Window{From: cut + float64(k)*minute, Requests: len(w.ttft[0]), TTFT50: t[0], TTFT90: t[1], ITL50: g[0], ITL90: g[1]})
	}
	return e, nil
}

// orFar stands for a latency of a request that the simulated engine refused: an hour.
func orFar(v float64) float64 {
	if math.IsNaN(v) {
		return 3600
	}
	return v
}

// samples are the latencies of a window.
type samples struct{ ttft, itl pairs }

// pairs are simulated and measured values.
type pairs [2][]float64

// errors are the relative errors of p50 and p90.
func (p *pairs) errors() [2]float64 {
	s, m := stat.Quantiles(p[0], 0.5, 0.9), stat.Quantiles(p[1], 0.5, 0.9)
	return [2]float64{s[0]/m[0] - 1, s[1]/m[1] - 1}
}

// known is nil for what is not known, which JSON cannot hold.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
