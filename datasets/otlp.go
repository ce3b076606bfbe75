package datasets

import (
	"github.com/go-json-experiment/json/jsontext"
)

// readOTLP reads OTLP/JSON lines and keeps vLLM's llm_request spans, several a line. 64-bit times are
// strings or numbers and never pass through floating point.
// https://opentelemetry.io/docs/specs/otlp/, vLLM: vllm/tracing
func readOTLP(s *source, each func(*Row) error) error {
	return scanLines(s, func(o *object) error {
		var err error
		o.list("resourceSpans", func(_ string, v jsontext.Value) {
			o.in(v).list("scopeSpans", func(_ string, v jsontext.Value) {
				o.in(v).list("spans", func(_ string, v jsontext.Value) {
					if err == nil {
						span := &object{rec: &fault{line: s.line}}
						span.parse(v)
						row := span.llmRequest(s)
						err = emit(s, span.rec, &row, each)
					}
				})
			})
		})
		if err == nil && o.rec.reason != "" {
			s.drop(*o.rec)
		}
		return err
	})
}

// in is an element of a list as an object of the same record.
func (o *object) in(v jsontext.Value) *object {
	e := &object{rec: o.rec, at: o.at}
	e.parse(v)
	return e
}

// llmRequest makes a row of one span.
func (o *object) llmRequest(s *source) Row {
	row := newRow(s.line)
	if o.rec.reason == "" && o.text("name") != "llm_request" {
		o.skip("other span")
		return row
	}
	begin, end := o.nanos("startTimeUnixNano"), o.nanos("endTimeUnixNano")
	if end < begin {
		o.fail("endTimeUnixNano", string(o.get("endTimeUnixNano")), "end before start")
	}
	row.Arrival = o.arrival(s, begin)
	a := o.attributes()
	row.Prompt, row.Output = a.count("gen_ai.usage.prompt_tokens"), a.count("gen_ai.usage.completion_tokens")
	if !a.has("gen_ai.latency.time_to_first_token") {
		o.fail("gen_ai.latency.time_to_first_token", "", "no time_to_first_token")
	}
	row.TTFT, row.E2E = a.maybe("gen_ai.latency.time_to_first_token"), a.maybe("gen_ai.latency.e2e")
	row.Queue = a.maybe("gen_ai.latency.time_in_queue")
	row.MaxTokens, row.ID = a.maybeCount("gen_ai.request.max_tokens"), a.text("gen_ai.request.id")
	if !Known(row.E2E) {
		row.E2E = float64(end-begin) / 1e9
	}
	if row.TTFT > row.E2E {
		o.fail("gen_ai.latency.time_to_first_token", "", "ttft longer than the request")
	}
	if row.Output > 1 {
		row.ITL = (row.E2E - row.TTFT) / float64(row.Output-1)
	}
	if code := string(o.object("status").get("code")); code == "2" || code == `"STATUS_CODE_ERROR"` {
		row.Outcome = Failed
	}
	return row
}

// attributes is the list of key-value pairs of a span as an object.
func (o *object) attributes() *object {
	a := &object{rec: o.rec}
	o.list("attributes", func(_ string, v jsontext.Value) {
		pair := o.in(v)
		value := pair.object("value")
		for _, kind := range []string{"intValue", "doubleValue", "stringValue", "boolValue"} {
			if value.has(kind) {
				a.members = append(a.members, member{pair.text("key"), value.get(kind).Clone()})
			}
		}
	})
	return a
}
