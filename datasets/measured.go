package datasets

import (
	"strconv"
	"strings"
)

// readMeasured reads measured.csv, this project's schema for per-request measurements: latencies in
// milliseconds, arrivals in seconds since the first request of the run, empty cells where a figure
// was not measured, in-flight figures over all replicas of the run.
func readMeasured(s *source, each func(*Row) error) error {
	columns := []string{"run", "model", "req_id", "session_id", "turn", "arrival_s", "prompt_tokens", "output_tokens",
		"ttft_ms", "tpot_ms", "e2e_ms", "queue_ms", "inflight", "inflight_prefill", "status",
		"hardware?", "replicas?", "stack?", "offered_qps?"}
	latest := map[string]float64{}
	return scanTable(s, each, columns, func(t *table, c []column) Row {
		row := newRow(t.s.line)
		row.Run, row.Model, row.ID, row.Session = t.text(c[0]), t.text(c[1]), t.text(c[2]), t.text(c[3])
		row.Turn = t.maybeCount(c[4])
		row.Arrival = t.maybe(c[5])
		row.Prompt, row.Output = t.maybeCount(c[6]), t.maybeCount(c[7])
		row.TTFT, row.ITL, row.E2E, row.Queue = t.maybeMs(c[8]), t.maybeMs(c[9]), t.maybeMs(c[10]), t.maybeMs(c[11])
		row.State.Inflight, row.State.Prefilling = t.maybeCount(c[12]), t.maybeCount(c[13])
		row.Outcome, row.Code, row.Err = t.outcome(c[14])
		row.Hardware, row.Replicas, row.Stack, row.OfferedRPS = t.text(c[15]), t.maybeCount(c[16]), t.text(c[17]), t.maybe(c[18])
		if row.TTFT > row.E2E && row.Outcome == Completed {
			row.Outcome = Suspect
		}
		if t.bad.reason == "" && Known(row.Arrival) {
			s.clock.late = row.Arrival < latest[row.Run]
			latest[row.Run] = max(latest[row.Run], row.Arrival)
		}
		return row
	})
}

// outcome reads ok, suspect, error or error:<code>.
func (t *table) outcome(c column) (Outcome, int, string) {
	v, ok := t.required(c)
	kind, what, _ := strings.Cut(v, ":")
	switch {
	case !ok, v == "ok":
		return Completed, 0, ""
	case v == "suspect":
		return Suspect, 0, ""
	case kind == "error":
		if code, err := strconv.Atoi(what); err == nil && code > 0 {
			return Failed, code, ""
		}
		return Failed, 0, shorten(what)
	}
	t.fail(t.name(c), v, "unknown status")
	return Failed, 0, ""
}
