package datasets

// readAccessLog reads the JSON access log of a gateway, one request a line. time is a date with a
// zone or seconds since 1970; a figure that is null or missing is unknown.
func readAccessLog(s *source, each func(*Row) error) error {
	return scanLines(s, func(o *object) error {
		row := newRow(s.line)
		row.Arrival = o.arrival(s, o.date("time"))
		row.ID, row.Model, row.Session = o.text("request_id"), o.text("model"), o.text("session")
		if host := o.text("upstream_host"); host != "-" {
			row.Endpoint = host
		}
		row.Code = o.count("status")
		if row.Code < 200 || row.Code >= 400 {
			row.Outcome = Failed
		}
		row.Prompt, row.Output = o.maybeCount("prompt_tokens"), o.maybeCount("completion_tokens")
		row.TTFT, row.E2E = o.maybe("ttft_ms")/1e3, o.maybe("duration_ms")/1e3
		if row.TTFT > row.E2E {
			o.fail("ttft_ms", string(o.get("ttft_ms")), "ttft longer than the request")
		}
		if row.Output > 1 {
			row.ITL = (row.E2E - row.TTFT) / float64(row.Output-1)
		}
		return emit(s, o.rec, &row, each)
	})
}
