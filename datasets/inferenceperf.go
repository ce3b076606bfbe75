package datasets

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// readInferencePerf reads the per-request report of inference-perf: an array of requests with the
// time of each token. https://github.com/kubernetes-sigs/inference-perf
func readInferencePerf(s *source, each func(*Row) error) error {
	d := newDocument(s)
	n := 0
	ok, err := d.array(func() error {
		n++
		o, err := d.record(n)
		if err != nil {
			return err
		}
		row := o.perfRequest(s, n)
		return emit(s, o.rec, &row, each)
	})
	switch {
	case err != nil:
		return err
	case !ok:
		return s.fatal(0, "not an array of requests", "")
	}
	return d.end()
}

func (o *object) perfRequest(s *source, n int) Row {
	row := newRow(n)
	begin, end := o.seconds("start_time"), o.seconds("end_time")
	if end < begin {
		o.fail("end_time", string(o.get("end_time")), "end before start")
	}
	row.Arrival, row.E2E = o.arrival(s, begin), float64(end-begin)/1e9
	info := o.object("info")
	prompt, answer := info.object("request_metrics").object("text"), info.object("response_metrics")
	if !info.has("request_metrics") && info.has("input_tokens") { // before version 0.3
		prompt, answer = info, info
	}
	row.Prompt, row.Output = prompt.maybeCount("input_tokens"), answer.maybeCount("output_tokens")
	if o.has("error") {
		e := o.object("error")
		row.Outcome, row.Err = Failed, shorten(e.text("error_type")+": "+e.text("error_msg"))
		return row
	}
	if row.Prompt < 0 {
		o.fail("info.request_metrics.text.input_tokens", "", "missing field")
	}
	var times []float64
	answer.list("output_token_times", func(where string, v jsontext.Value) { times = append(times, answer.real(where, v)) })
	row.tokenTimes(o, float64(begin)/1e9, times)
	return row
}

// tokenTimes fills in the latencies from the time of each token.
func (r *Row) tokenTimes(o *object, begin float64, times []float64) {
	for i, t := range times {
		if i == 0 {
			r.TTFT = t - begin
			continue
		}
		r.Gaps = append(r.Gaps, t-times[i-1])
	}
	switch {
	case r.TTFT < 0, r.TTFT > r.E2E+1e-3:
		o.fail("output_token_times", fmt.Sprint(times[0]), "token outside the request")
	case r.Output > 1 && len(times) > 1:
		r.ITL = (times[len(times)-1] - times[0]) / float64(r.Output-1)
	}
	for _, g := range r.Gaps {
		if g < 0 {
			o.fail("output_token_times", fmt.Sprint(g), "token times out of order")
		}
	}
}

// readInferenceStage reads the summary of one stage of inference-perf.
func readInferenceStage(s *source, each func(*Stage) error) error {
	d := newDocument(s)
	o, err := d.record(1)
	if err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	load, good, failed := o.object("load_summary"), o.object("successes"), o.object("failures")
	times := good.object("latency")
	st := Stage{
		Line: 1, Stage: Unknown, Count: load.count("count"), Requested: load.maybe("requested_rate"), Achieved: load.maybe("achieved_rate"),
		OK: good.count("count"), Failed: failed.count("count"),
		Prompt: good.object("prompt_len").maybe("mean"), Output: good.object("output_len").maybe("mean"),
		TTFT: times.object("time_to_first_token").summary(), ITL: times.object("inter_token_latency").summary(), E2E: times.object("request_latency").summary(),
	}
	return emit(s, o.rec, &st, each)
}

func (o *object) summary() Summary {
	if o.members == nil {
		nan := math.NaN()
		return Summary{nan, nan, nan, nan}
	}
	return Summary{Mean: o.maybe("mean"), P50: o.maybe("median"), P90: o.maybe("p90"), P99: o.maybe("p99")}
}
