package datasets

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Format names a file format.
type Format string

// The formats, by what a file of them holds.
const (
	Azure         Format = "azure"          // Azure LLM inference traces 2023, 2024, 2025
	Mooncake      Format = "mooncake"       // Mooncake traces with prefix-block hashes
	BurstGPT      Format = "burstgpt"       // BurstGPT v1 and v3
	Agentic       Format = "agentic"        // agent sessions with message hashes
	EPP           Format = "epp"            // training records of llm-d's endpoint picker
	LMBench       Format = "lmbench"        // LMBenchmark CSV
	VLLMBench     Format = "vllm-bench"     // vllm bench serve --save-detailed
	InferencePerf Format = "inference-perf" // per-request report of inference-perf
	GuideLLM      Format = "guidellm"       // guidellm benchmark report
	OTLP          Format = "otlp"           // OTLP/JSON spans of vLLM
	AccessLog     Format = "access-log"     // JSON access log of a gateway
	Measured      Format = "measured"       // this project's measured.csv
	VLLMCPU       Format = "vllm-cpu"       // this project's vLLM-on-CPU measurement

	ServeGenRates     Format = "servegen-rates"
	ServeGenLengths   Format = "servegen-tokens"
	TimeSeries        Format = "vllm-timeseries"      // engine state each second
	EngineLog         Format = "vllm-log"             // engine state from log lines, several runs
	FPM               Format = "vllm-fpm"             // forward-pass metrics
	Steps             Format = "vllm-steps"           // scheduler steps
	Silicon           Format = "silicon"              // measured operating points
	InferenceStages   Format = "inference-perf-stage" // stage summary of inference-perf, JSON
	StageTable        Format = "stage-table"          // several of them as CSV
	SplitwiseProfiles Format = "splitwise-profile"
	SidecarCost       Format = "sidecar-cost"
	PodCounts         Format = "pods"
)

// reader is what is known of one format.
type reader struct {
	holds string   // what its records are, for messages
	marks []string // columns or members that only files of the format have
	scan  any      // func(*source, func(*T) error) error
}

// formats lists the readers. Its order of detection is by number of marks; see [source.detect].
var formats = map[Format]reader{
	Azure:         {"requests", []string{"TIMESTAMP"}, readAzure},
	Mooncake:      {"requests", []string{"timestamp", "hash_ids"}, readMooncake},
	BurstGPT:      {"requests", []string{"Timestamp", "Request tokens"}, readBurstGPT},
	Agentic:       {"requests", []string{"session_id", "msg_hash_ids"}, readAgentic},
	EPP:           {"requests", []string{"actual_ttft_ms", "input_token_length"}, readEPP},
	LMBench:       {"requests", []string{"generation_tokens", "launch_time"}, readLMBench},
	VLLMBench:     {"requests", []string{"model_id", "num_prompts"}, readVLLMBench},
	InferencePerf: {"requests", []string{"start_time", "end_time"}, readInferencePerf},
	GuideLLM:      {"requests", []string{"benchmarks"}, readGuideLLM},
	OTLP:          {"requests", []string{"resourceSpans"}, readOTLP},
	AccessLog:     {"requests", []string{"time", "status", "duration_ms"}, readAccessLog},
	Measured:      {"requests", []string{"run", "req_id", "arrival_s"}, readMeasured},
	VLLMCPU:       {"requests", []string{"scraped_running", "shared_prefix_tokens"}, readVLLMCPU},

	ServeGenRates:     {"arrival rates", []string{"client", "rate_rps"}, readServeGenRates},
	ServeGenLengths:   {"token lengths", []string{"client", "in_p50"}, readServeGenLengths},
	FPM:               {"engine iterations", []string{"sum_prefill_tokens"}, readPasses},
	Steps:             {"scheduler steps", []string{"step_id", "sched_tokens"}, readSteps},
	Silicon:           {"operating points", []string{"silicon_ttft_ms"}, readSilicon},
	InferenceStages:   {"stage summaries", []string{"load_summary", "successes"}, readInferenceStage},
	StageTable:        {"stage summaries", []string{"config", "requested_rate", "achieved_rate"}, readStageTable},
	SplitwiseProfiles: {"timed batches", []string{"prompt_size", "token_time"}, readProfiles},
	SidecarCost:       {"sidecar costs", []string{"model_type", "target_rps"}, readCosts},
	PodCounts:         {"replica counts", []string{"pending", "init"}, readPods},
	TimeSeries:        {"engine states", []string{"running", "gen_throughput"}, readTimeSeries},
	EngineLog:         {"engine states", []string{"running", "gen_tok_s"}, readTimeSeries},
}

// known lists the formats' names for messages.
func known() string {
	names := make([]string, 0, len(formats))
	for f := range formats {
		names = append(names, string(f))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// detect finds the format of a source from its first 64 KiB, without reading on. A file matches a
// format when it has all its marks; of several the one with most marks wins.
func (s *source) detect() (Format, error) {
	head, _ := s.in.Peek(headSize)
	at := 0
	for i, line := range bytes.SplitAfter(head, []byte("\n")) {
		rest := head[at:]
		at += len(line)
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		names := columnNames(line)
		if line[0] == '{' || line[0] == '[' {
			names = memberNames(rest)
		}
		if f, ok := match(names); ok {
			return f, nil
		}
		if headless(line) {
			return Azure, nil
		}
		if i >= 20 {
			break
		}
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	return "", s.fatal(0, fmt.Sprintf("format not recognised by its beginning %q", shorten(string(line))), "formats read: "+known())
}

func match(names []string) (Format, bool) {
	var best Format
	for f, r := range formats {
		n := len(r.marks)
		for _, m := range r.marks {
			if slices.Contains(names, m) {
				n--
			}
		}
		if n == 0 && (best == "" || len(r.marks) > len(formats[best].marks) || len(r.marks) == len(formats[best].marks) && f < best) {
			best = f
		}
	}
	return best, best != ""
}

func columnNames(line []byte) []string {
	var names []string
	for c := range strings.SplitSeq(string(line), ",") {
		names = append(names, strings.Trim(strings.TrimSpace(c), `"`))
	}
	return names
}

// memberNames lists the member names of the first object as far as it can be read; of an array, of
// its first element.
func memberNames(text []byte) []string {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	var names []string
	if d.PeekKind() == '[' {
		if _, err := d.ReadToken(); err != nil {
			return nil
		}
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		names = append(names, name.String())
		if d.SkipValue() != nil {
			break
		}
	}
	return names
}

// headless recognises an Azure trace that lost its header, so that the message can say so.
func headless(line []byte) bool {
	cells := columnNames(line)
	if len(cells) != 3 {
		return false
	}
	_, date := parseDate(cells[0])
	_, why := parseCount(cells[1])
	return date && why == ""
}
