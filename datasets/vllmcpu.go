package datasets

import "math"

// readVLLMCPU reads this project's measurement of vLLM on a CPU: one row per request with the
// scraped gauges and the client's ledger at the time it was sent. group is the prefix group; rows
// without a shared prefix have GroupTokens 0. cached_tokens was reported with the answer, so a
// router did not know it when it placed the request.
func readVLLMCPU(s *source, each func(*Row) error) error {
	columns := []string{"id", "t", "endpoint", "group", "shared_prefix_tokens", "prompt_tokens", "cached_tokens", "max_tokens",
		"output_tokens", "scraped_running", "scraped_waiting", "scraped_kv", "scrape_age_ms", "inflight",
		"inflight_prefill_tokens", "inflight_decode", "inflight_context_tokens", "ttft_ms", "itl_mean_ms", "e2e_ms", "error"}
	return scanTable(s, each, columns, func(t *table, c []column) Row {
		row := newRow(t.s.line)
		row.ID, row.Endpoint, row.Err = t.text(c[0]), t.text(c[2]), shorten(t.text(c[20]))
		at := t.seconds(c[1])
		t.arrival(at)
		row.Arrival = float64(at) / 1e9
		row.Group, row.GroupTokens = t.maybeCount(c[3]), t.maybeCount(c[4])
		row.Prompt, row.Cached = t.count(c[5]), t.maybeCount(c[6])
		row.MaxTokens, row.Output = t.maybeCount(c[7]), t.maybeCount(c[8])
		row.State = State{
			Running: t.maybeCount(c[9]), Waiting: t.maybeCount(c[10]), KV: t.maybe(c[11]), ScrapeAge: t.maybeMs(c[12]),
			Inflight: t.maybeCount(c[13]), PrefillTokens: t.maybeCount(c[14]), Decoding: t.maybeCount(c[15]),
			Prefilling: Unknown, ContextTokens: t.maybeCount(c[16]), HitShare: math.NaN(),
		}
		if row.State.Decoding >= 0 && row.State.Inflight >= row.State.Decoding {
			row.State.Prefilling = row.State.Inflight - row.State.Decoding
		}
		row.TTFT, row.ITL, row.E2E = t.maybeMs(c[17]), t.maybeMs(c[18]), t.maybeMs(c[19])
		if row.Err != "" {
			row.Outcome = Failed
		}
		return row
	})
}
