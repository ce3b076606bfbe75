package emulator

import (
	"fmt"
	"strconv"
	"strings"
)

// vllm writes the families of vLLM 0.32's page in its order, with its names, help texts and labels.
// e.mu is held.
func (e *Emulator) vllm(p *page, model string) {
	s, m := &e.stats, &e.meter
	p.labels = `engine="` + strconv.Itoa(e.cfg.Rank) + `",` + model
	p.counter("vllm:estimated_flops_per_gpu_total", "Estimated number of floating point operations per GPU (for Model Flops Utilization calculations).", 0)
	p.counter("vllm:estimated_read_bytes_per_gpu_total", "Estimated number of bytes read from memory per GPU (for Model Flops Utilization calculations).", 0)
	p.counter("vllm:estimated_write_bytes_per_gpu_total", "Estimated number of bytes written to memory per GPU (for Model Flops Utilization calculations).", 0)
	p.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", float64(s.Running))
	p.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", float64(s.Waiting))
	p.gauges("vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals vllm:num_requests_waiting.",
		series{`reason="capacity"`, float64(s.Waiting - s.WaitingDeferred)}, series{`reason="deferred"`, float64(s.WaitingDeferred)})
	p.gauges("vllm:engine_sleep_state", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
		series{`sleep_state="awake"`, 1}, series{`sleep_state="weights_offloaded"`, 0}, series{`sleep_state="discard_all"`, 0})
	p.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", s.KVUsage)
	p.counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.", float64(s.Queries))
	p.counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.", float64(s.Hits))
	p.counter("vllm:external_prefix_cache_queries_total", "External prefix cache queries from KV connector cross-instance cache sharing, in terms of number of queried tokens.", 0)
	p.counter("vllm:external_prefix_cache_hits_total", "External prefix cache hits from KV connector cross-instance cache sharing, in terms of number of cached tokens.", 0)
	p.counter("vllm:mm_cache_queries_total", "Multi-modal cache queries, in terms of number of queried items.", 0)
	p.counter("vllm:mm_cache_hits_total", "Multi-modal cache hits, in terms of number of cached items.", 0)
	p.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", float64(s.Preemptions))
	p.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", float64(s.PromptTokens))
	p.counters("vllm:prompt_tokens_by_source_total", "Number of prompt tokens by source.",
		series{`source="local_compute"`, float64(s.PromptTokens - min(s.Hits, s.PromptTokens))}, series{`source="local_cache_hit"`, float64(min(s.Hits, s.PromptTokens))}, series{`source="external_kv_transfer"`, 0})
	p.counter("vllm:prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).", float64(s.Hits))
	p.counters("vllm:prompt_tokens_cached_by_source_total", "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
		series{`source="device"`, float64(s.Hits)}, series{`source="host"`, 0}, series{`source="p2p"`, 0}, series{`source="disk"`, 0}, series{`source="external_unspecified"`, 0})
	p.counter("vllm:generation_tokens_total", "Number of generation tokens processed.", float64(s.GenerationTokens))
	p.counters("vllm:request_success_total", "Count of successfully processed requests.",
		series{`finished_reason="stop"`, float64(m.stop)}, series{`finished_reason="length"`, float64(m.length)}, series{`finished_reason="abort"`, float64(m.aborted)},
		series{`finished_reason="error"`, float64(m.failed)}, series{`finished_reason="repetition"`, 0})
	common := p.labels
	p.labels = model
	p.counters("vllm:admission_rejections_total", "Number of admission attempts rejected by a queue limit, by reason.",
		series{`reason="max_num_queued_reqs"`, float64(m.rejected)}, series{`reason="max_num_queued_tokens"`, 0})
	p.labels = common
	p.histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", &m.prompt)
	p.histogram("vllm:request_generation_tokens", "Number of generation tokens processed.", &m.generation)
	p.histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", &m.iteration)
	p.histogram("vllm:request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.", &m.maxGeneration)
	p.histogram("vllm:request_params_n", "Histogram of the n request parameter.", &m.n)
	p.histogram("vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.", &m.maxToken)
	p.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &m.ttft)
	p.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", &m.itl)
	p.histogram("vllm:request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", &m.tpot)
	p.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &m.e2e)
	p.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", &m.queue)
	p.histogram("vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", &m.inference)
	p.histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", &m.prefill)
	p.histogram("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", &m.decode)
	p.histogram("vllm:request_num_preemptions", "Histogram of the number of times a request was preempted.", &m.preemptions)
	p.histogram("vllm:request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding cached tokens).", &m.computed)
	e.loraInfo(p)
	p.labels = ""
	p.gauges("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", series{e.cacheConfig(), 1})
}

// cacheConfig is the label set of vllm:cache_config_info.
func (e *Emulator) cacheConfig() string {
	c := e.cfg.Engine
	size := strconv.Itoa(c.BlockSize)
	title := func(b bool) string { return strings.ToUpper(strconv.FormatBool(b)[:1]) + strconv.FormatBool(b)[1:] }
	pairs := [][2]string{
		{"_block_size_resolved", "True"}, {"block_size", size}, {"cache_dtype", "auto"}, {"cache_hit_alignment_tokens", "None"},
		{"effective_attention_block_size", size}, {"enable_mamba_shared_prefix_checkpoint", "False"}, {"enable_prefix_caching", title(!c.NoCache)},
		{"engine", strconv.Itoa(e.cfg.Rank)}, {"gpu_memory_utilization", "0.9"}, {"hash_block_size", "None"}, {"is_attention_free", "False"},
		{"kv_cache_dtype_skip_layers", "[]"}, {"kv_cache_layout", "None"}, {"kv_cache_max_concurrency", strconv.Itoa(c.MaxSeqs)},
		{"kv_cache_memory_bytes", "None"}, {"kv_cache_size_tokens", strconv.Itoa(c.Blocks * c.BlockSize)}, {"kv_offloading_backend", "native"},
		{"kv_offloading_size", "None"}, {"kv_sharing_fast_prefill", "False"}, {"mamba_block_size", "None"}, {"mamba_cache_dtype", "auto"},
		{"mamba_cache_mode", "none"}, {"mamba_page_size_padded", "None"}, {"mamba_ssm_cache_dtype", "float32"}, {"num_cpu_blocks", "None"},
		{"num_gpu_blocks", strconv.Itoa(c.Blocks)}, {"num_gpu_blocks_override", "None"}, {"prefix_cache_retention_interval", "0"},
		{"prefix_caching_hash_algo", "sha256"}, {"prefix_match_unit", "None"}, {"replayssm_buffer_len", "16"}, {"skip_page_size_padded", "None"},
		{"sliding_window", "None"}, {"swa_bounded_replay", "True"}, {"use_kda_recoverssm", "False"}, {"use_replayssm", "False"}, {"user_specified_block_size", "False"},
	}
	out := make([]string, len(pairs))
	for i, kv := range pairs {
		out[i] = fmt.Sprintf("%s=%q", kv[0], kv[1])
	}
	return strings.Join(out, ",")
}
