package datasets

// readBurstGPT reads BurstGPT v1 (seconds since the start of the trace) and v3 (with sessions and
// elapsed time). A request without answer tokens failed; the file says nothing else of it.
// https://github.com/HPMLL/BurstGPT
func readBurstGPT(s *source, each func(*Row) error) error {
	columns := []string{"Timestamp", "Model", "Request tokens", "Response tokens", "Session ID?", "Elapsed time?"}
	return scanTable(s, each, columns, func(t *table, c []column) Row {
		row := newRow(t.s.line)
		row.Arrival = t.arrival(t.seconds(c[0]))
		row.Model, row.Session = t.text(c[1]), t.text(c[4])
		row.Prompt, row.Output = t.count(c[2]), t.count(c[3])
		row.E2E = t.maybe(c[5])
		if row.Output == 0 {
			t.skip("failed request (zero tokens)")
		}
		return row
	})
}
