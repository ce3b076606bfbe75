package datasets

const mooncakeBlock = 512 // tokens of one hashed block

// readMooncake reads Mooncake's traces: milliseconds since the start, token counts, and the ids of
// the prompt's 512-token blocks, equal where the prefix is equal. The ids must cover the prompt.
// https://github.com/kvcache-ai/Mooncake
func readMooncake(s *source, each func(*Row) error) error {
	return scanLines(s, func(o *object) error {
		row := newRow(s.line)
		row.Arrival = o.arrival(s, o.millis("timestamp"))
		row.Prompt, row.Output = o.count("input_length"), o.count("output_length")
		row.Blocks, row.BlockTokens = o.ids("hash_ids"), mooncakeBlock
		if o.rec.reason == "" {
			o.checkBlocks(&row)
		}
		return emit(s, o.rec, &row, each)
	})
}

func (o *object) checkBlocks(row *Row) {
	value := string(o.get("hash_ids"))
	if n := len(row.Blocks); row.Prompt > n*mooncakeBlock || n > 0 && row.Prompt <= (n-1)*mooncakeBlock {
		o.fail("hash_ids", value, "hash_ids do not cover input_length")
		return
	}
	seen := make(map[uint64]bool, len(row.Blocks))
	for _, id := range row.Blocks {
		if seen[id] {
			o.fail("hash_ids", value, "block repeats in one request")
			return
		}
		seen[id] = true
	}
}
