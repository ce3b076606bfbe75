package datasets

// readLMBench reads the CSV of LMBenchmark: times in seconds, launch and finish on the client's
// clock. https://github.com/LMCache/LMBenchmark
func readLMBench(s *source, each func(*Row) error) error {
	columns := []string{"prompt_tokens", "generation_tokens", "ttft", "generation_time", "launch_time", "finish_time", "user_id?", "question_id?"}
	return scanTable(s, each, columns, func(t *table, c []column) Row {
		row := newRow(t.s.line)
		launch := t.seconds(c[4])
		row.Arrival = t.arrival(launch)
		row.E2E = float64(t.seconds(c[5])-launch) / 1e9
		row.Prompt, row.Output = t.count(c[0]), t.count(c[1])
		row.TTFT = t.number(c[2])
		decode := t.number(c[3])
		if row.Output > 1 {
			row.ITL = decode / float64(row.Output-1)
		}
		row.Session, row.Turn = t.text(c[6]), t.maybeCount(c[7])
		switch {
		case row.E2E < 0:
			t.fail(t.name(c[5]), t.text(c[5]), "finish before launch")
		case row.TTFT > row.E2E:
			t.fail(t.name(c[2]), t.text(c[2]), "ttft longer than the request (milliseconds in a seconds column?)")
		}
		return row
	})
}
