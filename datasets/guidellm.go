package datasets

import "fmt"

// readGuideLLM reads the report of guidellm: benchmarks, each with its successful, errored and
// incomplete requests. A benchmark is a run. https://github.com/vllm-project/guidellm
func readGuideLLM(s *source, each func(*Row) error) error {
	d := newDocument(s)
	n, bench := 0, 0
	requests := func(run string, outcome Outcome) error {
		_, err := d.array(func() error {
			n++
			o, err := d.record(n)
			if err != nil {
				return err
			}
			row := o.guideRequest(s, n)
			row.Run, row.Outcome = run, outcome
			s.clock.late = false // lists by outcome, not by time
			return emit(s, o.rec, &row, each)
		})
		return err
	}
	outcomes := map[string]Outcome{"successful": Completed, "errored": Failed, "incomplete": Failed}
	benchmark := func() error {
		bench++
		run := fmt.Sprintf("benchmark %d", bench)
		_, err := d.object(func(name string) error {
			if name != "requests" {
				return d.skip()
			}
			_, err := d.object(func(name string) error {
				if outcome, ok := outcomes[name]; ok {
					return requests(run, outcome)
				}
				return d.skip()
			})
			return err
		})
		return err
	}
	_, err := d.object(func(name string) error {
		if name != "benchmarks" {
			return d.skip()
		}
		_, err := d.array(benchmark)
		return err
	})
	if err != nil {
		return err
	}
	return d.end()
}

func (o *object) guideRequest(s *source, n int) Row {
	row := newRow(n)
	row.ID = o.text("request_id")
	info := o.object("info")
	row.Err = shorten(info.text("error"))
	times := info.object("timings")
	begin, end := times.seconds("request_start"), times.seconds("request_end")
	row.Arrival = o.arrival(s, begin)
	row.E2E = float64(end-begin) / 1e9
	if end < begin {
		o.fail("info.timings.request_end", string(times.get("request_end")), "end before start")
	}
	row.Prompt, row.Output = o.object("input_metrics").maybeCount("text_tokens"), o.object("output_metrics").maybeCount("text_tokens")
	row.TTFT, row.ITL = o.maybe("time_to_first_token_ms")/1e3, o.maybe("inter_token_latency_ms")/1e3
	if row.TTFT > row.E2E {
		o.fail("time_to_first_token_ms", string(o.get("time_to_first_token_ms")), "ttft longer than the request")
	}
	return row
}
