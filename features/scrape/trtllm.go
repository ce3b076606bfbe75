package scrape

// trtllm reads the page of TensorRT-LLM's trtllm-serve, at /prometheus/metrics: its /metrics
// answers a JSON list of iteration statistics, which is no page. Unverified: written from its
// published metric names, not against the page of a running server. Labels not configured there
// read "undefined". The tokens counters move when a request ends, not while it runs.
var trtllm = dialect{
	engine:           "trtllm",
	prefix:           "trtllm_",
	path:             "/prometheus/metrics",
	starts:           [256]bool{'n': true, 'k': true, 'p': true, 'g': true},
	queriesArePrompt: true,
	metric: func(name []byte) metric {
		switch string(name) {
		case "trtllm_num_requests_waiting":
			return waiting
		case "trtllm_num_requests_running":
			return running
		case "trtllm_kv_cache_utilization":
			return kvUsage
		case "trtllm_prompt_cached_tokens_total", "trtllm_prompt_cached_tokens":
			return hits
		case "trtllm_prompt_tokens_total", "trtllm_prompt_tokens":
			return prompt
		case "trtllm_generation_tokens_total", "trtllm_generation_tokens":
			return generated
		case "trtllm_kv_cache_tokens_per_block":
			return blockSize
		case "trtllm_kv_cache_max_blocks":
			return blocks
		}
		return unwanted
	},
	label: func(name []byte) role {
		if string(name) == "model_name" {
			return modelOf
		}
		return noRole
	},
}
