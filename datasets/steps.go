package datasets

// readSteps reads sampled scheduler steps of vLLM; times are microseconds in the file. An empty
// cycle_us means the next step was not recorded.
func readSteps(s *source, each func(*Step) error) error {
	columns := []string{"run", "step_id", "t_us", "duration_us", "cycle_us", "running", "waiting", "prefill_reqs", "decode_reqs", "sched_tokens",
		"prefill_tokens", "decode_tokens", "finished", "preempted", "kv_usage", "kv_blocks_total", "kv_blocks_free", "tp"}
	return scanTable(s, each, columns, func(t *table, c []column) Step {
		return Step{
			Line: t.s.line, Run: t.text(c[0]), ID: t.count(c[1]),
			T: t.number(c[2]) / 1e6, Duration: t.number(c[3]) / 1e6, Cycle: t.maybe(c[4]) / 1e6,
			Running: t.count(c[5]), Waiting: t.count(c[6]), PrefillReqs: t.count(c[7]), DecodeReqs: t.count(c[8]),
			Tokens: t.count(c[9]), PrefillTokens: t.count(c[10]), DecodeTokens: t.count(c[11]),
			Finished: t.count(c[12]), Preempted: t.count(c[13]),
			KV: t.number(c[14]), Blocks: t.count(c[15]), FreeBlocks: t.count(c[16]), TP: t.count(c[17]),
		}
	})
}
