package scrape

// vllm reads the pages of vLLM 0.6 to 0.32; the 0.32 page of the tests is a real one. Names that
// changed on the way:
//
//	kv_cache_usage_perc    gpu_cache_usage_perc in older versions
//	prefix_cache_queries   gpu_prefix_cache_queries in the first V1 releases, there in blocks: only the ratio to hits means something
//
// Counters carry _total; some re-exporters drop it, so both are read. In data-parallel serving there
// is one series per engine. cache_config_info has no model label, lora_requests_info neither model
// nor engine.
var vllm = dialect{
	engine: "vllm",
	prefix: "vllm:",
	path:   "/metrics",
	starts: [256]bool{'n': true, 'k': true, 'g': true, 'p': true, 'l': true, 'c': true},
	metric: func(name []byte) metric {
		switch string(name) {
		case "vllm:num_requests_waiting":
			return waiting
		case "vllm:num_requests_running":
			return running
		case "vllm:kv_cache_usage_perc":
			return kvUsage
		case "vllm:gpu_cache_usage_perc":
			return kvUsageOld
		case "vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries":
			return queries
		case "vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries":
			return queriesOld
		case "vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits":
			return hits
		case "vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits":
			return hitsOld
		case "vllm:prompt_tokens_total", "vllm:prompt_tokens":
			return prompt
		case "vllm:generation_tokens_total", "vllm:generation_tokens":
			return generated
		case "vllm:num_preemptions_total", "vllm:num_preemptions":
			return preemptions
		case "vllm:cache_config_info":
			return cacheInfo
		case "vllm:lora_requests_info":
			return loraInfo
		}
		return unwanted
	},
	label: func(name []byte) role {
		switch string(name) {
		case "model_name":
			return modelOf
		case "engine":
			return summed
		case "block_size":
			return blockSizeOf
		case "num_gpu_blocks":
			return blocksOf
		case "max_lora":
			return maxLoRA
		case "running_lora_adapters":
			return runningLoRA
		case "waiting_lora_adapters":
			return waitingLoRA
		}
		return noRole
	},
}
