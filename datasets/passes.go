package datasets

// readPasses reads forward-pass metrics as aiconfigurator's collectors record them: one engine
// iteration a row, its batch and its queue. https://github.com/ai-dynamo/aiconfigurator
func readPasses(s *source, each func(*Pass) error) error {
	columns := []string{"run", "model", "phase", "workload_segment", "counter_id", "dp_rank",
		"sum_prefill_tokens", "num_prefill_requests", "sum_prefill_kv_tokens", "var_prefill_length",
		"num_decode_requests", "sum_decode_kv_tokens", "var_decode_kv_tokens",
		"queued_prefill_requests", "queued_prefill_tokens", "queued_var_prefill_length",
		"queued_decode_requests", "queued_decode_kv_tokens", "queued_var_decode_kv_tokens", "latency_ms"}
	return scanTable(s, each, columns, func(t *table, c []column) Pass {
		return Pass{
			Line: t.s.line, Run: t.text(c[0]), Model: t.text(c[1]), Phase: t.text(c[2]), Segment: t.text(c[3]),
			Counter: t.count(c[4]), Rank: t.count(c[5]),
			PrefillTokens: t.count(c[6]), PrefillRequests: t.count(c[7]), PrefillKV: t.count(c[8]), PrefillVar: t.number(c[9]),
			DecodeRequests: t.count(c[10]), DecodeKV: t.count(c[11]), DecodeVar: t.number(c[12]),
			QueuedPrefills: t.count(c[13]), QueuedPrefillTokens: t.count(c[14]), QueuedPrefillVar: t.number(c[15]),
			QueuedDecodes: t.count(c[16]), QueuedDecodeKV: t.count(c[17]), QueuedDecodeVar: t.number(c[18]),
			Latency: t.number(c[19]) / 1e3,
		}
	})
}
