package datasets

// readSilicon reads aiconfigurator's table of operating points measured on GPUs.
// https://github.com/ai-dynamo/aiconfigurator
func readSilicon(s *source, each func(*Aggregate) error) error {
	columns := []string{"measured", "concurrency", "backend", "backend_version", "model_path", "system", "precision", "mode",
		"isl", "osl", "batch_size", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size",
		"prefill_num_workers", "decode_num_workers", "silicon_ttft_ms", "silicon_tpot_ms"}
	return scanTable(s, each, columns, func(t *table, c []column) Aggregate {
		return Aggregate{
			Line: t.s.line, Measured: t.text(c[0]), Concurrency: t.maybeCount(c[1]),
			Backend: t.text(c[2]), Version: t.text(c[3]), Model: t.text(c[4]), System: t.text(c[5]), Precision: t.text(c[6]), Mode: t.text(c[7]),
			ISL: t.count(c[8]), OSL: t.count(c[9]), Batch: t.maybeCount(c[10]),
			TP: t.maybeCount(c[11]), PP: t.maybeCount(c[12]), DP: t.maybeCount(c[13]), MoETP: t.maybeCount(c[14]), MoEEP: t.maybeCount(c[15]),
			Prefills: t.maybeCount(c[16]), Decodes: t.maybeCount(c[17]),
			TTFT: t.maybeMs(c[18]), TPOT: t.maybeMs(c[19]),
		}
	})
}
