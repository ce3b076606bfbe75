package datasets

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// row is newRow changed by f.
func row(line int, f func(*Row)) Row {
	r := newRow(line)
	f(&r)
	return r
}

func readAll[T Record](t *testing.T, f Format, text string) ([]T, *Report) {
	t.Helper()
	var out []T
	rep, err := Read(f, "sample", strings.NewReader(text), func(r *T) error {
		out = append(out, *r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, rep
}

func wantRecords[T Record](t *testing.T, f Format, want ...T) {
	t.Helper()
	got, _ := readAll[T](t, f, samples[f])
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 1e-9)); d != "" {
		t.Errorf("%s (-want +got):\n%s", f, d)
	}
}

func TestRequestReaders(t *testing.T) {
	wantRecords(t, Azure,
		row(2, func(r *Row) { r.Arrival, r.Prompt, r.Output, r.Images = 0, 770, 491, 0 }),
		row(3, func(r *Row) { r.Arrival, r.Prompt, r.Output, r.Images = 5.55, 949, 126, 1 }))
	wantRecords(t, BurstGPT,
		row(2, func(r *Row) {
			r.Arrival, r.Session, r.E2E, r.Model, r.Prompt, r.Output = 0, "s_1722", 43, "GPT-4", 906, 446
		}),
		row(3, func(r *Row) {
			r.Arrival, r.Session, r.E2E, r.Model, r.Prompt, r.Output = 50.5, "s_d598", 2, "ChatGPT", 36, 29
		}))
	wantRecords(t, LMBench, row(2, func(r *Row) {
		r.Arrival, r.Session, r.Turn, r.Prompt, r.Output, r.TTFT, r.ITL, r.E2E = 0, "3603", 1, 76, 21, .05, .025, .75
	}))
	wantRecords(t, Measured,
		row(2, func(r *Row) {
			r.Run, r.Model, r.Hardware, r.Replicas, r.Stack, r.OfferedRPS, r.ID, r.Session, r.Turn = "r1", "m", "H100 tp1", 8, "vllm", .5, "7", "u1", 2
			r.Arrival, r.Prompt, r.Output, r.TTFT, r.ITL, r.E2E = 1.25, 21073, 100, 1.1395, .0155, 2.661
			r.State.Inflight, r.State.Prefilling = 3, 1
		}),
		row(3, func(r *Row) {
			r.Run, r.Model, r.Hardware, r.Stack, r.ID, r.Arrival, r.Prompt, r.Outcome, r.Code = "r1", "m", "H100 tp1", "vllm", "8", 1, 10, Failed, 503
		}))
	wantRecords(t, VLLMCPU,
		row(2, func(r *Row) {
			r.ID, r.Arrival, r.Endpoint, r.Group, r.GroupTokens, r.Prompt, r.Cached, r.MaxTokens, r.Output = "0", .0945, "1", 3, 1024, 1578, 512, 67, 66
			r.TTFT, r.ITL, r.E2E = .097131, .005127, .435545
			r.State = State{Running: 2, Waiting: 1, KV: .25, ScrapeAge: .1368, Inflight: 4, Prefilling: 1, Decoding: 3, PrefillTokens: 700, ContextTokens: 5000, HitShare: math.NaN()}
		}),
		row(3, func(r *Row) {
			r.ID, r.Arrival, r.Endpoint, r.Group, r.GroupTokens, r.Prompt, r.MaxTokens, r.Outcome, r.Err = "1", .2, "0", 9, 0, 20, 8, Failed, "timeout"
			r.State = State{ScrapeAge: .01, HitShare: math.NaN()}
		}))
	wantRecords(t, Mooncake,
		row(1, func(r *Row) {
			r.Arrival, r.Prompt, r.Output, r.Blocks, r.BlockTokens = 0, 1000, 64, []uint64{7, math.MaxUint64}, 512
		}),
		row(2, func(r *Row) {
			r.Arrival, r.Prompt, r.Output, r.Blocks, r.BlockTokens = 1.5, 512, 9, []uint64{7}, 512
		}))
	wantRecords(t, Agentic,
		row(1, func(r *Row) {
			r.Session, r.Turn, r.Arrival, r.Model, r.Prompt, r.Output, r.Tools = "s", 1, 0, "m", 5276, 101, "5c9d"
			r.Messages = []Message{{1, 7035}, {2, 341}}
		}),
		row(2, func(r *Row) {
			r.Session, r.Turn, r.Arrival, r.Model, r.Prompt, r.Output, r.Outcome, r.Err = "s", 2, 1, "m", 8, 0, Failed, "rate_limited"
		}))
	wantRecords(t, EPP,
		row(1, func(r *Row) {
			r.Prompt, r.TTFT = 48, .455
			r.State.KV, r.State.Waiting, r.State.Running, r.State.HitShare, r.State.PrefillTokens, r.State.ContextTokens = .25, 1, 2, .5, 64, 32
		}),
		row(2, func(r *Row) {
			r.Prompt, r.ITL, r.State.KV, r.State.Waiting, r.State.Running = 48, .0125, 0, 0, 0
		}))
	wantRecords(t, AccessLog,
		row(1, func(r *Row) {
			r.ID, r.Model, r.Session, r.Endpoint, r.Code, r.Arrival, r.Prompt, r.Output, r.TTFT, r.E2E, r.ITL = "r1", "m", "s1", "10.0.0.7:8000", 200, 0, 812, 91, .15, 1.95, .02
		}),
		row(2, func(r *Row) {
			r.ID, r.Model, r.Code, r.Outcome, r.Arrival, r.Prompt, r.Output, r.E2E = "r2", "m", 503, Failed, 1, 20, 0, .0035
		}))
	wantRecords(t, OTLP, row(1, func(r *Row) {
		r.ID, r.Arrival, r.Prompt, r.Output, r.MaxTokens, r.TTFT, r.E2E, r.ITL, r.Queue, r.Outcome = "cmpl-1", 0, 3140, 4, 1024, .5, 2, .5, .25, Failed
	}))
	wantRecords(t, VLLMBench,
		row(1, func(r *Row) {
			r.Model, r.Arrival, r.Prompt, r.Output, r.TTFT, r.ITL, r.E2E, r.Gaps = "m", 0, 10, 4, .25, .25, 1.5, []float64{.25, .125, .375}
		}),
		row(2, func(r *Row) {
			r.Model, r.Arrival, r.Prompt, r.Output, r.TTFT, r.E2E, r.Gaps = "m", .5, 20, 1, .5, .5, []float64{}
		}))
	wantRecords(t, InferencePerf,
		row(1, func(r *Row) {
			r.Arrival, r.Prompt, r.Output, r.TTFT, r.ITL, r.E2E, r.Gaps = 0, 12, 3, .5, .5, 1.5, []float64{.25, .75}
		}),
		row(2, func(r *Row) { r.Arrival, r.E2E, r.Outcome, r.Err = 1, .25, Failed, "ClientError: 503" }))
	wantRecords(t, GuideLLM,
		row(1, func(r *Row) {
			r.Run, r.ID, r.Arrival, r.Prompt, r.Output, r.TTFT, r.ITL, r.E2E = "benchmark 1", "a", 0, 3255, 43, 1.4375, .0285, 2.5
		}),
		row(2, func(r *Row) {
			r.Run, r.ID, r.Arrival, r.Prompt, r.E2E, r.Outcome, r.Err = "benchmark 1", "b", -.5, 3819, 60, Failed, "timeout"
		}))
}

func TestOtherReaders(t *testing.T) {
	nan := math.NaN()
	wantRecords(t, ServeGenRates, Rate{Line: 2, Client: 35, Start: 600, RPS: 8.34, CV: 1.359092, Dist: "Gamma", Param1: .54138, Param2: .211625})
	wantRecords(t, ServeGenLengths, Lengths{Line: 2, Client: 35, In: [4]float64{11, 21, 103, 511}, Out: [4]float64{593, 1244, 2190, 7605}})
	wantRecords(t, TimeSeries, Sample{Line: 2, T: 1, PromptTPS: 3392, OutputTPS: 2, Running: 5, Waiting: 2, Swapped: Unknown, KV: .1325, HitShare: nan})
	wantRecords(t, EngineLog,
		Sample{Line: 2, Run: "r", Endpoint: "p1", OutputTPS: 222.1, Running: 7, Waiting: 3, KV: .5, HitShare: nan},
		Sample{Line: 3, Run: "r", Endpoint: "p1", T: 5, PromptTPS: 127.8, OutputTPS: 128, Running: 1, KV: .006, HitShare: nan})
	wantRecords(t, FPM, Pass{
		Line: 2, Run: "r", Model: "m", Phase: "mixed", Segment: "real", Counter: 652, Rank: 1,
		PrefillTokens: 128, PrefillRequests: 1, PrefillKV: 64, PrefillVar: .5, DecodeRequests: 9, DecodeKV: 41741, DecodeVar: 22371810.988,
		QueuedPrefills: 2, QueuedPrefillTokens: 300, QueuedPrefillVar: 1.5, QueuedDecodes: 4, QueuedDecodeKV: 500, QueuedDecodeVar: 2.5, Latency: .014627,
	})
	wantRecords(t, Steps, Step{
		Line: 2, Run: "r", ID: 10, T: .442387, Duration: .000553, Cycle: nan, Running: 17, Waiting: 1, PrefillReqs: 4, DecodeReqs: 13,
		Tokens: 1535, PrefillTokens: 1522, DecodeTokens: 13, Finished: 2, Preempted: 3, KV: .018115, Blocks: 31356, FreeBlocks: 30788, TP: 4,
	})
	wantRecords(t, Silicon, Aggregate{
		Line: 2, Measured: "2026-02-09", Concurrency: 8, Backend: "vllm", Version: "0.12", Model: "Qwen/Qwen3-32B", System: "h100_sxm", Precision: "fp8", Mode: "agg",
		ISL: 1024, OSL: 128, Batch: 16, TP: 2, PP: 1, DP: Unknown, MoETP: 1, MoEEP: 1, Prefills: Unknown, Decodes: Unknown, TTFT: .8405, TPOT: .0165,
	})
	stage := Stage{
		Line: 2, Config: "c", Stage: 1, Count: 60, Requested: 1, Achieved: 1.005, OK: 59, Failed: 1, Prompt: 200.7, Output: 62.4,
		TTFT: Summary{.5, .4, .6, .7}, ITL: Summary{.05, .04, .06, .07}, E2E: Summary{5, 4, 6, 7},
	}
	wantRecords(t, StageTable, stage)
	wantRecords(t, InferenceStages, Stage{
		Line: 1, Stage: Unknown, Count: 3, Requested: 2.5, Achieved: 2.25, OK: 2, Failed: 1, Prompt: 204.5, Output: 62.5,
		TTFT: Summary{.5, .25, 1, 2}, ITL: Summary{nan, nan, nan, nan}, E2E: Summary{1, .5, 2, 3},
	})
	wantRecords(t, SplitwiseProfiles, Profile{Line: 2, Model: "llama2-70b", Hardware: "a100-80gb", Prompt: 512, Batch: 1, Output: 128, Prefill: .1965, Token: .055, E2E: 7.169, TP: 2})
	wantRecords(t, SidecarCost, Cost{Line: 2, Model: "lightgbm", TotalQPS: 120, Batch: 1, Target: 120, Actual: 119, OKShare: .99, Mean: .0055, P50: .0045, P95: .0125, P99: .0165})
	wantRecords(t, PodCounts, Pods{Line: 2, Run: "r", T: 5.5, Running: 4, Pending: 1, Init: 2})
}

// Every format has a sample and is recognised by it.
func TestDetection(t *testing.T) {
	for f := range formats {
		s, err := newSource("sample", strings.NewReader(samples[f]))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if got, err := s.detect(); got != f {
			t.Errorf("%s is taken for %q (%v)", f, got, err)
		}
	}
	if len(samples) != len(formats) {
		t.Errorf("%d samples of %d formats", len(samples), len(formats))
	}
}
