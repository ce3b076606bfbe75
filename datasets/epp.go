package datasets

// readEPP reads the training records of llm-d's endpoint picker: the state of the chosen pod and
// either a TTFT (the TPOT being 0) or a TPOT (the TTFT being 0). Records have no clock; they stand in
// the order in which their label became known. https://github.com/llm-d/llm-d-latency-predictor
func readEPP(s *source, each func(*Row) error) error {
	return scanLines(s, func(o *object) error {
		row := newRow(s.line)
		row.Prompt = o.count("input_token_length")
		row.State.KV = o.number("kv_cache_percentage")
		row.State.Waiting, row.State.Running = o.count("num_request_waiting"), o.count("num_request_running")
		row.State.HitShare = o.maybe("prefix_cache_score")
		row.State.PrefillTokens, row.State.ContextTokens = o.maybeCount("prefill_tokens_in_flight"), o.maybeCount("decode_tokens_in_flight")
		ttft, tpot := o.number("actual_ttft_ms"), o.number("actual_tpot_ms")
		if ttft > 0 {
			row.TTFT = ttft / 1e3
		}
		if tpot > 0 {
			row.ITL = tpot / 1e3
		}
		if ttft == 0 && tpot == 0 {
			o.fail("actual_ttft_ms", "0", "no label")
		}
		if row.State.KV > 1 {
			o.fail("kv_cache_percentage", string(o.get("kv_cache_percentage")), "out of range")
		}
		return emit(s, o.rec, &row, each)
	})
}
