package datasets

// readAzure reads the Azure LLM inference traces: 2023 (no zone), 2024 (with zone) and the
// multimodal one of 2025 (RFC 3339, number of images).
// https://github.com/Azure/AzurePublicDataset
func readAzure(s *source, each func(*Row) error) error {
	columns := []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens", "NumImages?"}
	return scanTable(s, each, columns, func(t *table, c []column) Row {
		row := newRow(t.s.line)
		row.Arrival = t.arrival(t.date(c[0]))
		row.Prompt, row.Output, row.Images = t.count(c[1]), t.count(c[2]), t.maybeCount(c[3])
		return row
	})
}
