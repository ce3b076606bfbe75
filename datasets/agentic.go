package datasets

import "fmt"

// readAgentic reads sessions of agents as inference-sim translates them: one call of the model a
// line, with hashes and sizes of its messages. logged_at is taken for the arrival.
func readAgentic(s *source, each func(*Row) error) error {
	return scanLines(s, func(o *object) error {
		row := newRow(s.line)
		row.Session, row.Turn = o.text("session_id"), o.count("turn")
		row.Arrival = o.arrival(s, o.date("logged_at"))
		row.Model = o.text("model")
		row.Prompt, row.Output = o.count("input_length"), o.count("output_length")
		row.Tools = o.text("tools_hash")
		ids, chars := o.ids("msg_hash_ids"), o.ids("msg_chars")
		if len(ids) != len(chars) {
			o.fail("msg_chars", string(o.get("msg_chars")), fmt.Sprintf("msg_chars has %d entries, msg_hash_ids has %d", len(chars), len(ids)))
		}
		if status := o.text("status"); status != "success" {
			row.Outcome, row.Err = Failed, shorten(status)
		}
		for i := range min(len(ids), len(chars)) {
			if chars[i] > most {
				o.fail("msg_chars", fmt.Sprint(chars[i]), "out of range")
			}
			row.Messages = append(row.Messages, Message{ID: ids[i], Chars: int(chars[i])})
		}
		return emit(s, o.rec, &row, each)
	})
}
