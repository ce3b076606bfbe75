package datasets

// readProfiles reads the timed batches behind splitwise-sim's performance model.
// https://github.com/Mutinifni/splitwise-sim
func readProfiles(s *source, each func(*Profile) error) error {
	columns := []string{"model", "hardware", "prompt_size", "batch_size", "token_size", "prompt_time", "token_time", "e2e_time", "tensor_parallel"}
	return scanTable(s, each, columns, func(t *table, c []column) Profile {
		return Profile{
			Line: t.s.line, Model: t.text(c[0]), Hardware: t.text(c[1]),
			Prompt: t.count(c[2]), Batch: t.count(c[3]), Output: t.count(c[4]),
			Prefill: t.maybeMs(c[5]), Token: t.maybeMs(c[6]), E2E: t.maybeMs(c[7]), TP: t.count(c[8]),
		}
	})
}

// readCosts reads stress runs of a latency-prediction sidecar over HTTP.
func readCosts(s *source, each func(*Cost) error) error {
	columns := []string{"model_type", "test_total_qps", "batch", "target_rps", "actual_rps", "ok_pct", "avg_ms", "p50_ms", "p95_ms", "p99_ms"}
	return scanTable(s, each, columns, func(t *table, c []column) Cost {
		return Cost{
			Line: t.s.line, Model: t.text(c[0]), TotalQPS: t.maybe(c[1]), Batch: t.maybeCount(c[2]), Target: t.maybe(c[3]), Actual: t.maybe(c[4]),
			OKShare: t.percent(c[5]), Mean: t.maybeMs(c[6]), P50: t.maybeMs(c[7]), P95: t.maybeMs(c[8]), P99: t.maybeMs(c[9]),
		}
	})
}

// readPods reads the replica counts of an autoscaled deployment.
func readPods(s *source, each func(*Pods) error) error {
	columns := []string{"run", "t_s", "running", "pending", "init"}
	return scanTable(s, each, columns, func(t *table, c []column) Pods {
		return Pods{Line: t.s.line, Run: t.text(c[0]), T: t.number(c[1]), Running: t.count(c[2]), Pending: t.count(c[3]), Init: t.count(c[4])}
	})
}
