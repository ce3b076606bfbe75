package datasets

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMalformed holds every reader to the counts and the errors of testdata/malformed/expect.json.
func TestMalformed(t *testing.T) {
	dir := filepath.Join("testdata", "malformed")
	data, err := os.ReadFile(filepath.Join(dir, "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expect map[string]struct {
		Format    Format
		Fatal     bool
		Kept      int
		Dropped   map[string]int
		Reordered int
		Error     string
	}
	if err := json.Unmarshal(data, &expect); err != nil {
		t.Fatal(err)
	}
	if len(expect) != 17 {
		t.Fatalf("%d fixtures", len(expect))
	}
	for name, want := range expect {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			rows, rep, err := LoadAs[Row](want.Format, path)
			if want.Fatal {
				var e *Error
				if !errors.As(err, &e) || rows != nil {
					t.Fatalf("error %v with %d rows, want a fatal %T and none", err, len(rows), e)
				}
				if !strings.Contains(err.Error(), want.Error) || !strings.HasPrefix(err.Error(), path+": ") {
					t.Errorf("error %q, want %q in it", err, want.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if rep.Kept != want.Kept || len(rows) != want.Kept || rep.Reordered != want.Reordered || !maps.Equal(rep.Dropped, want.Dropped) {
				t.Errorf("%s\nwant kept %d, reordered %d, dropped %v", rep, want.Kept, want.Reordered, want.Dropped)
			}
			if want.Error != "" && (rep.First == nil || !strings.Contains(rep.First.Error(), want.Error)) {
				t.Errorf("first fault %v, want %q", rep.First, want.Error)
			}
			if found, err := Detect(path); err != nil || found != want.Format {
				t.Errorf("detected %q, %v", found, err)
			}
		})
	}
}

// The cut of a compressed file is told with the rows before it.
func TestTruncatedGzipSaysHowFar(t *testing.T) {
	_, rep, err := Load[Row](filepath.Join("testdata", "malformed", "11_truncated.csv.gz"))
	if err == nil || !strings.Contains(err.Error(), "damaged after 1960 rows") || rep.Rows != 1960 {
		t.Errorf("%v; %v", rep, err)
	}
}

// A trace that lost its header is still recognised, to say so.
func TestHeaderLost(t *testing.T) {
	_, err := LoadTrace(filepath.Join("testdata", "malformed", "02_azure_no_header.csv"))
	if err == nil || !strings.Contains(err.Error(), "no header: want a TIMESTAMP column; the first line must name the columns") {
		t.Error(err)
	}
}

// 64-bit nanoseconds survive whether they are written as strings or as numbers.
func TestNanosecondsAreExact(t *testing.T) {
	rows, _, err := Load[Row](filepath.Join("testdata", "malformed", "15b_otlp_bad_spans.jsonl"))
	if err != nil || len(rows) != 2 {
		t.Fatal(len(rows), err)
	}
	if rows[1].Line != 4 || rows[1].Arrival != 0 || rows[0].Arrival != 0 {
		t.Errorf("arrivals %v and %v of equal instants", rows[0].Arrival, rows[1].Arrival)
	}
}

func TestValidFixtures(t *testing.T) {
	dir := filepath.Join(dataDir(t), "fixtures", "valid")
	for name, want := range map[string]struct {
		format     Format
		rows, kept int
	}{
		"access_log.jsonl": {AccessLog, 3, 3}, "azure_2023.csv": {Azure, 20, 20}, "azure_2024.csv": {Azure, 6, 6}, "azure_2025_multimodal.csv": {Azure, 5, 5},
		"burstgpt_v1.csv": {BurstGPT, 25, 24}, "burstgpt_v3.csv": {BurstGPT, 60, 60}, "epp_training.jsonl": {EPP, 12, 12}, "guidellm.json": {GuideLLM, 2, 2},
		"inference_perf_per_request.json": {InferencePerf, 2, 2}, "inference_perf_stage.json": {InferenceStages, 1, 1},
		"lmbench_sharegpt.csv": {LMBench, 20, 20}, "lmbench_short.csv": {LMBench, 20, 20}, "mooncake.jsonl": {Mooncake, 20, 20}, "otlp_vllm.jsonl": {OTLP, 4, 4},
		"vllm_bench_new.json": {VLLMBench, 4, 3}, "vllm_bench_old.json": {VLLMBench, 4, 3}, "vllm_timeseries.csv": {TimeSeries, 20, 20},
	} {
		path := filepath.Join(dir, name)
		found, err := Detect(path)
		if err != nil || found != want.format {
			t.Errorf("%s: detected %q, %v", name, found, err)
			continue
		}
		n, rep, err := scanAny(found, path)
		if err != nil || n != want.kept || rep.Rows != want.rows || rep.First != nil {
			t.Errorf("%s: %v, %v, %v", name, rep, rep.First, err)
		}
	}
	for _, name := range []string{"vllm_0_32_metrics.txt", "vllm_0_32_chat_stream.sse", "kv_event_vectors.txt"} {
		if f, err := Detect(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), "format not recognised") {
			t.Errorf("%s: detected %q, %v", name, f, err)
		}
	}
}

// TestReferenceFiles reads every file of the reference data: all rows of its table of contents.
func TestReferenceFiles(t *testing.T) {
	dir := dataDir(t)
	for name, want := range map[string]struct {
		format Format
		rows   int
	}{
		"azure/azure2023_code.csv.gz": {Azure, 6173}, "azure/azure2023_conv.csv.gz": {Azure, 13556},
		"mooncake/conversation.jsonl.gz": {Mooncake, 8125}, "mooncake/synthetic.jsonl.gz": {Mooncake, 2730},
		"servegen/m-large_rates.csv.gz": {ServeGenRates, 55767}, "servegen/m-large_tokens.csv.gz": {ServeGenLengths, 352},
		"servegen/m-small_rates.csv.gz": {ServeGenRates, 28067}, "servegen/m-small_tokens.csv.gz": {ServeGenLengths, 178},
		"servegen/deepseek-r1_rates.csv.gz": {ServeGenRates, 1867}, "servegen/deepseek-r1_tokens.csv.gz": {ServeGenLengths, 27},
		"agentic/appworld_test_normal_10.jsonl.gz": {Agentic, 65}, "agentic/tau2_retail_10.jsonl.gz": {Agentic, 69},
		"epp-training-h200/sharegpt-h200.jsonl.gz": {EPP, 3400}, "epp-training-h200/chatbot-synthetic-h200.jsonl.gz": {EPP, 3060},
		"aibrix-bench-a100/measured.csv.gz": {Measured, 20606}, "lmbench-llmd/measured.csv.gz": {Measured, 53536},
		"vllm-engine-servingsim/measured.csv.gz": {Measured, 900}, "vllm-engine-servingsim/timeseries.csv.gz": {EngineLog, 316},
		"otel-vllm/raw/jan20-codellama-train-1.otlp.jsonl.gz": {OTLP, 280}, "otel-vllm/engine.csv.gz": {EngineLog, 250},
		"otel-vllm/measured.csv.gz": {Measured, 677}, "otel-vllm/guidellm_measured.csv.gz": {Measured, 400},
		"vllm-steps/steps.csv.gz": {Steps, 14077}, "vllm-fpm-aiconfigurator/passes.csv.gz": {FPM, 96792}, "silicon-aggregates/silicon.csv.gz": {Silicon, 3654},
		"llmperf-hosted/measured.csv.gz": {Measured, 1945}, "aibrix-autoscale-v100/measured.csv.gz": {Measured, 26347},
		"aibrix-autoscale-v100/pods.csv.gz": {PodCounts, 1793}, "aibrix-autoscale-v100/engine.csv.gz": {EngineLog, 2868},
		"profiles/splitwise_perf_model.csv.gz": {SplitwiseProfiles, 1260}, "predictor-cost/sidecar_stress.csv.gz": {SidecarCost, 834},
		"stage-aggregates/inference_perf_kubecon.csv.gz": {StageTable, 42},
		"vllm-cpu/vllm-cpu-homog.csv.gz":                 {VLLMCPU, 4520}, "vllm-cpu/vllm-cpu-hetero.csv.gz": {VLLMCPU, 3127},
	} {
		if raced && want.rows > 5000 {
			continue
		}
		path := filepath.Join(dir, name)
		found, err := Detect(path)
		if err != nil || found != want.format {
			t.Errorf("%s: detected %q, %v", name, found, err)
			continue
		}
		n, rep, err := scanAny(found, path)
		if err != nil || n != want.rows || rep.Rows != want.rows || len(rep.Dropped) > 0 {
			t.Errorf("%s: %v, %v", name, rep, err)
		}
	}
}
