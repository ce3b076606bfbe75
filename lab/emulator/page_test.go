package emulator

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

var sampleLine = regexp.MustCompile(`^([a-z0-9_:]+)(?:\{(.*)\})? (\S+)$`)

// shape maps each family of a page to its type, help and the label names of its samples.
func shape(t *testing.T, text, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			kind, rest, _ := strings.Cut(rest, " ")
			name, what, _ := strings.Cut(rest, " ")
			if strings.HasPrefix(name, prefix) {
				out[name] += kind + " " + what + "\n"
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a sample: %q", line)
		}
		if _, err := strconv.ParseFloat(m[3], 64); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if !strings.HasPrefix(m[1], prefix) {
			continue
		}
		var labels []string
		for _, l := range regexp.MustCompile(`([a-z_]+)="[^"]*"`).FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		out[m[1]+"{}"] = strings.Join(labels, " ")
	}
	return out
}

// The page has the families of a recorded one of vLLM 0.32: names, types, help texts, labels.
func TestPageLooksLikeVLLM(t *testing.T) {
	data, err := os.ReadFile(shared(t, "fixtures/valid/vllm_0_32_metrics.txt"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		want := shape(t, string(data), "vllm:")
		got := shape(t, call(t.Context(), e, "GET", "/metrics", "").String(), "vllm:")
		// The order of labels means nothing; ours has le last in histograms and reason before or after.
		for _, m := range []map[string]string{want, got} {
			for k, v := range maps.Clone(m) {
				if strings.HasSuffix(k, "{}") {
					m[k] = strings.Join(slices.Sorted(strings.FieldsSeq(v)), " ")
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-vLLM +ours)\n%s", d)
		}
	})
}

// numbers maps each series to its value.
func numbers(t *testing.T, e *Emulator) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(call(t.Context(), e, "GET", "/metrics", "").String()) {
		if m := sampleLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			labels := regexp.MustCompile(`(engine|model_name|engine_type|moe_ep_rank|pp_rank|tp_rank)="[^"]*",?`).ReplaceAllString(m[2], "")
			out[m[1]+"{"+strings.TrimSuffix(labels, ",")+"}"], _ = strconv.ParseFloat(m[3], 64)
		}
	}
	return out
}

// The page's figures are those of the requests that were answered.
func TestPageCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{})
		prompt := strings.Repeat("abcd", 160)
		var prompts, cached, generated int
		for range 3 {
			u := call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"`+prompt+`","max_tokens":10,"n":2}`).answer(t).Usage
			prompts += 2 * u.Prompt // each choice is a request of the engine
			generated += u.Completion
		}
		got := numbers(t, e)
		cached = int(got["vllm:prefix_cache_hits_total{}"])
		for name, want := range map[string]float64{
			"vllm:num_requests_running{}":                                0,
			"vllm:prompt_tokens_total{}":                                 float64(prompts),
			"vllm:prefix_cache_queries_total{}":                          float64(prompts),
			"vllm:generation_tokens_total{}":                             float64(generated),
			`vllm:request_success_total{finished_reason="length"}`:       6,
			"vllm:request_prompt_tokens_sum{}":                           float64(prompts),
			"vllm:request_generation_tokens_sum{}":                       float64(generated),
			"vllm:request_params_n_sum{}":                                6,
			"vllm:time_to_first_token_seconds_count{}":                   6,
			"vllm:inter_token_latency_seconds_count{}":                   6 * 9,
			`vllm:inter_token_latency_seconds_bucket{le="+Inf"}`:         6 * 9,
			`vllm:prompt_tokens_by_source_total{source="local_compute"}`: float64(prompts - cached),
			"vllm:iteration_tokens_total_sum{}":                          float64(prompts - cached + generated),
			"vllm:request_prefill_kv_computed_tokens_sum{}":              float64(prompts - cached),
		} {
			if v, ok := got[name]; !ok || v != want {
				t.Errorf("%s = %v, want %v", name, v, want)
			}
		}
		if cached < 4*144 || cached >= prompts {
			t.Errorf("%d of %d prompt tokens cached", cached, prompts)
		}
		sum := got["vllm:request_prefill_time_seconds_sum{}"] + got["vllm:request_decode_time_seconds_sum{}"] - got["vllm:request_inference_time_seconds_sum{}"]
		if sum > 1e-9 || sum < -1e-9 {
			t.Errorf("prefill and decode time are not the inference time: off by %v", sum)
		}
		if v := got[`vllm:time_to_first_token_seconds_sum{}`]; v <= 0 || v > 1 {
			t.Errorf("TTFT sum %v s", v)
		}
	})
}

// Gauges show what runs and waits.
func TestPageGauges(t *testing.T) {
	for _, dialect := range []Dialect{VLLM, SGLang} {
		t.Run(dialect.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := h100(t)
				cfg.MaxSeqs, cfg.Blocks = 2, 1001
				e := start(t, Config{Engine: cfg, Dialect: dialect})
				done := make(chan *capture, 5)
				for range 5 {
					go func() {
						done <- call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":300}`)
					}()
				}
				synctest.Wait()
				call(t.Context(), e, "POST", "/v1/completions", `{"prompt":"x","max_tokens":1}`)
				got := numbers(t, e)
				names := []string{"vllm:num_requests_running{}", "vllm:num_requests_waiting{}", "vllm:kv_cache_usage_perc{}"}
				if dialect == SGLang {
					names = []string{"sglang:num_running_reqs{}", "sglang:num_queue_reqs{}", "sglang:token_usage{}"}
				}
				// The last answer has left, with its like: one runs or none, and nothing waits.
				for i, high := range []float64{2, 4, 1} {
					if v, ok := got[names[i]]; !ok || v < 0 || v > high {
						t.Errorf("%s = %v, want at most %v", names[i], v, high)
					}
				}
				for range 5 {
					if c := <-done; c.answer(t).Usage.Completion != 300 {
						t.Errorf("answer %s", c)
					}
				}
			})
		})
	}
}

func TestHostileModelName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, Config{Model: "a\"b\\c\nd"})
		text := call(t.Context(), e, "GET", "/metrics", "").String()
		if !strings.Contains(text, `model_name="a\"b\\c\nd"`) {
			t.Error("the model name is not escaped")
		}
	})
}
