package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/engine"
)

// Trace is what one engine was sent and what came of it.
type Trace struct {
	Requests []Request // in order of time
	Measured []Latency // of each; NaN where not measured
	Limits   Limits
}

// Limits are what of an engine's configuration a recording must tell. Zero means: 256 requests, 8192
// tokens, a KV cache that is never full.
type Limits struct {
	MaxSeqs, MaxBatched, Blocks int
}

// Unknown are settings that a recording does not tell. All combinations are fitted and the one with
// the lowest loss is kept; with nothing to try, scheduling is asynchronous and limits are the traces'.
type Unknown struct {
	Lags    []int // of the profile ([engine.Profile])
	Batched []int // max_num_batched_tokens of all traces
}

// budgets are values of max_num_batched_tokens to try: vLLM's defaults for small and large GPUs, and
// smaller ones in the same steps.
func budgets() []int { return []int{64, 512, 2048, 8192} }

// Fit is an engine fitted to recorded requests.
type Fit struct {
	Coefs   engine.Coefs
	Profile engine.Profile
	Batched int     // max_num_batched_tokens that fitted best; 0: as the traces say
	Rows    int     // requests whose latencies the fit saw
	Loss    float64 // mean of the smallest two thirds of the absolute log errors of TTFT, ITL and queue time on these
}

// FitRequests fits an engine to what one or more engines of its kind were sent. Only latencies of
// requests for which seen is true are looked at; all requests up to the last of these are simulated,
// because they load the engine.
//
// The fitted form says in few figures what GPUs do: the work outside attention takes base up to knee
// tokens, then slope a token; attention takes quad per pair of prefill tokens; a decode takes seq, and
// kv per token of its context; the frontend takes its time before all that. Start values come from
// quantiles of the latencies. It fails below 20 requests.
func FitRequests(ctx context.Context, traces []Trace, unknown Unknown, seen func(trace, request int) bool) (*Fit, error) {
	f, err := newFitting(traces, seen)
	if err != nil {
		return nil, err
	}
	if len(unknown.Lags) == 0 {
		unknown.Lags = []int{1}
	}
	if len(unknown.Batched) == 0 {
		unknown.Batched = []int{0}
	}
	var best *Fit
	for _, lag := range unknown.Lags {
		for _, batched := range unknown.Batched {
			x := append([]float64(nil), f.start...)
			l := search(x, func(x []float64) float64 { return f.loss(ctx, shaped(x, lag, batched)) })
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if math.IsInf(l, 1) {
				return nil, fmt.Errorf("cannot simulate the recording: %w", f.failed)
			}
			if best == nil || l < best.Loss {
				best = shaped(x, lag, batched)
				best.Loss, best.Rows = l, f.rows
			}
		}
	}
	return best, nil
}

// fitting is what the fits of one recording have in common.
type fitting struct {
	traces []Trace // up to the last request that is looked at
	seen   func(trace, request int) bool
	rows   int
	start  []float64
	failed error
}

func newFitting(traces []Trace, seen func(trace, request int) bool) (*fitting, error) {
	f := &fitting{seen: seen}
	var gaps, perToken []float64 // us
	for t, tr := range traces {
		last := -1
		for i, m := range tr.Measured {
			if !seen(t, i) {
				continue
			}
			last = i
			f.rows++
			if m.ITL > 0 {
				gaps = append(gaps, m.ITL*1e6)
			}
			if m.TTFT > 0 {
				perToken = append(perToken, m.TTFT*1e6/float64(max(1, tr.Requests[i].Prompt)))
			}
		}
		f.traces = append(f.traces, Trace{tr.Requests[:last+1], tr.Measured[:last+1], tr.Limits})
	}
	const least = 20
	if min(len(gaps), len(perToken)) < least {
		return nil, fmt.Errorf("%d requests with TTFT, %d with a time between tokens: too few to fit; at least %d are needed", len(perToken), len(gaps), least)
	}
	// The shortest gaps are those of a lone decode, the fastest prompts those of a lone prefill.
	b, s := stat.Quantiles(gaps, 0.05)[0], stat.Quantiles(perToken, 0.1)[0]
	f.start = make([]float64, parameters)
	f.start[base], f.start[slope], f.start[knee], f.start[quad] = math.Log(b), math.Log(s), math.Log(64), math.Log(s/1e5)
	f.start[seq], f.start[kv], f.start[frontend] = math.Log(b/100), math.Log(b/1e5), math.Log(b/2)
	return f, nil
}

// loss is [Fit].Loss, infinite where the engine cannot be.
func (f *fitting) loss(ctx context.Context, fit *Fit) float64 {
	if ctx.Err() != nil {
		return math.Inf(1) // the search ends by itself when nothing helps
	}
	var logs []float64
	for t, tr := range f.traces {
		sim, err := Replay(fit.Config(tr.Limits), tr.Requests)
		if err != nil {
			f.failed = err
			return math.Inf(1)
		}
		for i, m := range tr.Measured {
			if f.seen(t, i) {
				logs = appendLog(logs, sim[i].TTFT, m.TTFT)
				logs = appendLog(logs, sim[i].ITL, m.ITL)
				if m.Queue > waited {
					logs = appendLog(logs, sim[i].Queue, m.Queue)
				}
			}
		}
	}
	slices.Sort(logs)
	return stat.Mean(logs[:max(1, int(trusted*float64(len(logs))))])
}

// trusted is the share of the errors that count, the smallest first. What disturbed an engine for a
// while (its neighbours on the machine, a compilation) makes errors that no coefficients explain, and a
// queue that it left behind must not make the fit slow down the whole run.
const trusted = 2.0 / 3

// waited is the queue time in seconds from which on its logarithm means something.
const waited = 0.1

// appendLog appends the absolute log error of a simulated latency, if it was measured. Errors beyond
// a factor of 7 count as that: what disturbed a few requests must not decide the fit.
func appendLog(logs []float64, sim, measured float64) []float64 {
	const most = 2
	if !(measured > 0) {
		return logs
	}
	if !(sim > 0) {
		return append(logs, most)
	}
	return append(logs, min(most, math.Abs(math.Log(sim/measured))))
}

// Coefficients of the fitted form, as logarithms.
const (
	base     = iota // us
	slope           // us per token
	knee            // tokens
	quad            // us per pair of tokens
	seq             // us per decode
	kv              // us per token of context
	frontend        // us
	parameters
)

// shaped is the engine at a point of the search.
func shaped(x []float64, lag, batched int) *Fit {
	const beyond = 16384 // tokens to the knot that gives the slope
	v := make([]float64, parameters)
	for i := range v {
		v[i] = math.Exp(min(max(x[i], -30), 15))
	}
	k, flat := 1+v[knee], max(1, v[base])
	c := engine.Coefs{
		GPU: "FITTED", Model: "fitted", TP: 1, DType: "bfloat16",
		Knots: []float64{1, k, k + beyond}, G: []float64{flat, flat, flat + v[slope]*beyond},
		PrefillQuad: v[quad], DecodeSeq: v[seq], DecodeKV: v[kv], KVBlocks: plenty, KVTokens: plenty * 16,
	}
	p := engine.Profile{Name: "fitted", Frontend: time.Duration(v[frontend] * 1e3), Lag: lag}
	return &Fit{Coefs: c, Profile: p, Batched: batched}
}

// plenty is a KV cache, in blocks, that is never full.
const plenty = 1 << 20

// Config is the fitted engine within limits.
func (f *Fit) Config(l Limits) engine.Config {
	cfg := engine.Config{Coefs: f.Coefs, Profile: f.Profile, Kernel: 1, MaxSeqs: l.MaxSeqs, MaxBatched: l.MaxBatched, Blocks: l.Blocks}
	if f.Batched > 0 {
		cfg.MaxBatched = f.Batched
	}
	if cfg.MaxBatched == 0 {
		cfg.MaxBatched = 8192
	}
	if cfg.MaxSeqs == 0 {
		cfg.MaxSeqs = 256
	}
	cfg.MaxSeqs = min(cfg.MaxSeqs, cfg.MaxBatched) // a request takes at least a token
	return cfg
}
