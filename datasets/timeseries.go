package datasets

// readTimeSeries reads the state of engines over time as vLLM logs it, in the three shapes met:
// plain (t, prompt_throughput, ...), per run (t_s, kv_cache_pct or kv_pct), and per run and pod with
// a clock of month and day (time, pending). Percentages become shares.
func readTimeSeries(s *source, each func(*Sample) error) error {
	columns := []string{"t?", "t_s?", "time?", "run?", "pod?", "prompt_throughput?", "prompt_tok_s?", "gen_throughput?", "gen_tok_s?",
		"running", "waiting?", "pending?", "swapped?", "kv_cache_pct?", "kv_pct?", "prefix_hit_pct?"}
	origin := map[string]int64{}
	return scanTable(s, each, columns, func(t *table, c []column) Sample {
		r := Sample{Line: t.s.line, Run: t.text(c[3]), Endpoint: t.text(c[4])}
		if clock := c[2]; clock >= 0 {
			at := t.dayTime(clock)
			if _, seen := origin[r.Run]; !seen && t.bad.reason == "" {
				origin[r.Run] = at
			}
			r.T = float64(at-origin[r.Run]) / 1e9
		} else {
			r.T = t.number(first(c[0], c[1]))
		}
		r.PromptTPS, r.OutputTPS = t.number(first(c[5], c[6])), t.number(first(c[7], c[8]))
		r.Running, r.Waiting, r.Swapped = t.count(c[9]), t.count(first(c[10], c[11])), t.maybeCount(c[12])
		r.KV, r.HitShare = t.percent(first(c[13], c[14])), t.percent(c[15])
		return r
	})
}

// first is the first column that exists.
func first(c ...column) column {
	for _, c := range c {
		if c >= 0 {
			return c
		}
	}
	return -1
}
