package emulator

import "strconv"

// sglang writes the families of SGLang's page that routers and boards read. The label set is that
// of a server without data parallelism. e.mu is held.
func (e *Emulator) sglang(p *page, model string) {
	s, m := &e.stats, &e.meter
	c := e.cfg.Engine
	capacity := float64((c.Blocks - 1) * c.BlockSize)
	p.labels = `engine_type="unified",` + model + `,moe_ep_rank="0",pp_rank="0",tp_rank="0"`
	if e.cfg.Rank > 0 {
		p.labels = `dp_rank="` + strconv.Itoa(e.cfg.Rank) + `",` + p.labels
	}
	p.gauge("sglang:num_running_reqs", "The number of running requests.", float64(s.Running))
	p.gauge("sglang:num_used_tokens", "The number of used tokens.", s.KVUsage*capacity)
	p.gauge("sglang:token_usage", "The token usage.", s.KVUsage)
	p.gauge("sglang:max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", capacity)
	p.gauge("sglang:num_queue_reqs", "The number of requests in the waiting queue.", float64(s.Waiting))
	rate := 0.0
	if s.Queries > 0 {
		rate = float64(s.Hits) / float64(s.Queries)
	}
	p.gauge("sglang:cache_hit_rate", "The prefix cache hit rate.", rate)
	p.gauge("sglang:page_size", "Number of tokens per page.", float64(c.BlockSize))
	p.gauge("sglang:num_pages", "Number of pages.", float64(c.Blocks))
	p.gauges("sglang:cache_config_info", "Information of the cache configuration.",
		series{`num_pages="` + strconv.Itoa(c.Blocks) + `",page_size="` + strconv.Itoa(c.BlockSize) + `"`, 1})
	p.counter("sglang:num_retracted_requests_total", "Number of retracted requests.", float64(s.Preemptions))
	p.labels = model
	p.counter("sglang:prompt_tokens_total", "Number of prefill tokens processed.", float64(s.PromptTokens))
	p.counter("sglang:generation_tokens_total", "Number of generation tokens processed.", float64(s.GenerationTokens))
	p.counters("sglang:cached_tokens_total", "Number of cached prompt tokens.", series{`cache_source="device"`, float64(s.Hits)})
	p.counter("sglang:num_requests_total", "Number of requests processed.", float64(s.Completed))
	p.counter("sglang:num_aborted_requests_total", "Number of aborted requests.", float64(m.aborted))
	p.histogram("sglang:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &m.ttft)
	p.histogram("sglang:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", &m.itl)
	p.histogram("sglang:e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", &m.e2e)
}
