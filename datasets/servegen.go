package datasets

// readServeGenRates reads the arrival process of each client and window of a ServeGen workload.
// https://github.com/alibaba/ServeGen
func readServeGenRates(s *source, each func(*Rate) error) error {
	columns := []string{"client", "window_start_s", "rate_rps", "interarrival_cv", "dist", "param1", "param2"}
	return scanTable(s, each, columns, func(t *table, c []column) Rate {
		return Rate{
			Line: t.s.line, Client: t.count(c[0]), Start: t.number(c[1]), RPS: t.number(c[2]), CV: t.maybe(c[3]),
			Dist: t.text(c[4]), Param1: t.maybe(c[5]), Param2: t.maybe(c[6]),
		}
	})
}

// readServeGenLengths reads the token quantiles of each client and window of a ServeGen workload.
func readServeGenLengths(s *source, each func(*Lengths) error) error {
	columns := []string{"client", "window_start_s", "in_p10", "in_p50", "in_p90", "in_p99", "out_p10", "out_p50", "out_p90", "out_p99"}
	return scanTable(s, each, columns, func(t *table, c []column) Lengths {
		r := Lengths{Line: t.s.line, Client: t.count(c[0]), Start: t.number(c[1])}
		t.quantiles(c[2:6], &r.In)
		t.quantiles(c[6:10], &r.Out)
		return r
	})
}

// quantiles reads numbers that must not fall.
func (t *table) quantiles(c []column, q *[4]float64) {
	for i := range q {
		q[i] = t.number(c[i])
		if i > 0 && q[i] < q[i-1] {
			t.fail(t.name(c[i]), t.text(c[i]), "quantiles out of order")
		}
	}
}
