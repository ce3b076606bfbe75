package datasets

// readStageTable reads stage summaries of inference-perf put together as one table.
func readStageTable(s *source, each func(*Stage) error) error {
	columns := []string{"config", "stage", "count", "requested_rate", "achieved_rate", "ok", "failed", "prompt_mean", "output_mean",
		"ttft_mean_s", "ttft_p50_s", "ttft_p90_s", "ttft_p99_s", "itl_mean_s", "itl_p50_s", "itl_p90_s", "itl_p99_s",
		"e2e_mean_s", "e2e_p50_s", "e2e_p90_s", "e2e_p99_s"}
	return scanTable(s, each, columns, func(t *table, c []column) Stage {
		sum := func(c []column) Summary {
			return Summary{Mean: t.maybe(c[0]), P50: t.maybe(c[1]), P90: t.maybe(c[2]), P99: t.maybe(c[3])}
		}
		return Stage{
			Line: t.s.line, Config: t.text(c[0]), Stage: t.count(c[1]), Count: t.count(c[2]), Requested: t.maybe(c[3]), Achieved: t.maybe(c[4]),
			OK: t.count(c[5]), Failed: t.count(c[6]), Prompt: t.maybe(c[7]), Output: t.maybe(c[8]),
			TTFT: sum(c[9:13]), ITL: sum(c[13:17]), E2E: sum(c[17:21]),
		}
	})
}
