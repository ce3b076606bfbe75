package calibrate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// knownEngine is an engine of the fitted form.
func knownEngine() *Fit {
	x := make([]float64, parameters)
	for i, v := range map[int]float64{base: 6000, slope: 40, knee: 200, quad: 0.0005, seq: 30, kv: 0.05, frontend: 5000} {
		x[i] = math.Log(v)
	}
	return shaped(x, 1, 0)
}

// recording is what a known engine makes of random requests.
func recording(t *testing.T, f *Fit, n int, limits Limits) Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	tr := Trace{Limits: limits}
	at := time.Duration(0)
	for range n {
		at += time.Duration(rng.ExpFloat64() * float64(150*time.Millisecond))
		tr.Requests = append(tr.Requests, Request{At: at, Prompt: 50 + rng.IntN(3000), Output: 1 + rng.IntN(200)})
	}
	var err error
	if tr.Measured, err = Replay(f.Config(limits), tr.Requests); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestFitRequestsRecovers: an engine fitted to the first half of what a known engine did foretells the
// second half, and finds the token budget that was not recorded.
func TestFitRequestsRecovers(t *testing.T) {
	known := knownEngine()
	tr := recording(t, known, 240, Limits{MaxSeqs: 64, MaxBatched: 512})
	tr.Limits.MaxBatched = 0
	half := len(tr.Requests) / 2
	f, err := FitRequests(context.Background(), []Trace{tr}, Unknown{Lags: []int{1}, Batched: []int{128, 512, 4096}}, func(_, i int) bool { return i < half })
	if err != nil {
		t.Fatal(err)
	}
	if f.Batched != 512 || f.Rows != half {
		t.Errorf("max_num_batched_tokens %d on %d rows, want 512 on %d", f.Batched, f.Rows, half)
	}
	sim, err := Replay(f.Config(tr.Limits), tr.Requests)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []column{ttft, e2e} {
		got, want := columnMean(sim[half:], of), columnMean(tr.Measured[half:], of)
		if math.Abs(got/want-1) > 0.10 {
			t.Errorf("mean of the second half %.4f s, want %.4f", got, want)
		}
	}
}

// TestFitRequestsLooksAway: the fit does not look at latencies of requests that judge it.
func TestFitRequestsLooksAway(t *testing.T) {
	tr := recording(t, knownEngine(), 80, Limits{MaxSeqs: 64, MaxBatched: 512})
	fit := func() *Fit {
		f, err := FitRequests(context.Background(), []Trace{tr}, Unknown{}, func(_, i int) bool { return i < 40 })
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := fit()
	for i := 40; i < 80; i++ {
		tr.Measured[i] = Latency{TTFT: 1e3, ITL: 1e3, E2E: 1e3, Queue: 1e3}
	}
	if after := fit(); after.Loss != before.Loss || after.Coefs.DecodeSeq != before.Coefs.DecodeSeq {
		t.Errorf("loss %v became %v", before.Loss, after.Loss)
	}
}

func TestFitRequestsErrors(t *testing.T) {
	tr := recording(t, knownEngine(), 30, Limits{})
	_, err := FitRequests(context.Background(), []Trace{tr}, Unknown{}, func(_, i int) bool { return i < 10 })
	if err == nil || !strings.Contains(err.Error(), "too few to fit") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = FitRequests(ctx, []Trace{tr}, Unknown{}, func(int, int) bool { return true })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// TestReplayLone: a lone request takes the frontend, one prefill step and decode steps.
func TestReplayLone(t *testing.T) {
	f := knownEngine()
	cfg := f.Config(Limits{})
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Replay(cfg, []Request{{At: time.Second, Prompt: 1000, Output: 3}})
	if err != nil {
		t.Fatal(err)
	}
	first := f.Profile.Frontend.Seconds() + e.StepTime(0, 0, [2]int{1000, 0})/1e6
	second := e.StepTime(1, 1001)/1e6 + e.StepTime(1, 1002)/1e6
	if math.Abs(got[0].TTFT-first) > 1e-6 || math.Abs(got[0].ITL-second/2) > 1e-6 || got[0].Queue != 0 {
		t.Errorf("%+v; want TTFT %v, ITL %v", got[0], first, second/2)
	}
}

func TestReplayRefused(t *testing.T) {
	cfg := knownEngine().Config(Limits{Blocks: 10})
	got, err := Replay(cfg, []Request{{Prompt: 1000, Output: 3}})
	if err != nil || !math.IsNaN(got[0].TTFT) || !math.IsNaN(got[0].E2E) {
		t.Errorf("%+v, %v; want no latency", got, err)
	}
	if _, err := Replay(cfg, []Request{{At: 1, Prompt: 1, Output: 1}, {Prompt: 1, Output: 1}}); err == nil {
		t.Error("requests out of order are accepted")
	}
}

// TestClosedLoopLone: one client sees a lone request's latencies.
func TestClosedLoopLone(t *testing.T) {
	cfg := knownEngine().Config(Limits{})
	lone, err := Replay(cfg, []Request{{Prompt: 500, Output: 50}})
	if err != nil {
		t.Fatal(err)
	}
	first, tpot, err := ClosedLoop(cfg, 1, 500, 50)
	if err != nil || math.Abs(first-lone[0].TTFT) > 1e-6 || math.Abs(tpot-lone[0].ITL) > 1e-6 {
		t.Errorf("TTFT %v, TPOT %v, %v; want %+v", first, tpot, err, lone[0])
	}
	if _, _, err := ClosedLoop(knownEngine().Config(Limits{Blocks: 4}), 1, 500, 50); err == nil {
		t.Error("a request that never fits is accepted")
	}
}
