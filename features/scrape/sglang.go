package scrape

// sglang reads SGLang's page. Unverified: written from its published metric names, not against the
// page of a running server.
//
// Under data parallelism there is one series per dp_rank; tp_rank, pp_rank and moe_ep_rank repeat
// what their group says. With priorities on, a gauge has one series per priority and one with an
// empty priority, the whole. Prompt tokens may be split by is_streaming and cached tokens by
// cache_source. The KV capacity is in the labels of cache_config_info, from 0.5.11 on in the gauges
// page_size and num_pages. SGLang refreshes its gauges when a batch is logged, so that an engine
// that went idle may go on showing its last batch (see [Trust]).
var sglang = dialect{
	engine:           "sglang",
	prefix:           "sglang:",
	path:             "/metrics",
	starts:           [256]bool{'n': true, 'c': true, 't': true, 'p': true, 'g': true},
	queriesArePrompt: true,
	metric: func(name []byte) metric {
		switch string(name) {
		case "sglang:num_queue_reqs":
			return waiting
		case "sglang:num_running_reqs":
			return running
		case "sglang:token_usage":
			return kvUsage
		case "sglang:cached_tokens_total", "sglang:cached_tokens":
			return hits
		case "sglang:prompt_tokens_total", "sglang:prompt_tokens":
			return prompt
		case "sglang:generation_tokens_total", "sglang:generation_tokens":
			return generated
		case "sglang:num_retracted_requests_total", "sglang:num_retracted_requests":
			return preemptions
		case "sglang:page_size":
			return blockSize
		case "sglang:num_pages":
			return blocks
		case "sglang:cache_config_info":
			return cacheInfo
		}
		return unwanted
	},
	label: func(name []byte) role {
		switch string(name) {
		case "model_name":
			return modelOf
		case "dp_rank", "is_streaming", "cache_source":
			return summed
		case "priority":
			return priority
		case "page_size":
			return blockSizeOf
		case "num_pages":
			return blocksOf
		}
		return noRole
	},
}
