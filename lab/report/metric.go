package report

// measure says how a metric is written and which way is better.
type measure struct {
	name  string
	unit  string
	scale Value // from the unit of the data to the one that is written
	more  bool  // more is better
	guard bool  // a harm above 5 % is named in the verdict
	off   func(*Method) Value
	floor Value // base below which shares of it say nothing
}

func ttftOff(m *Method) Value { return m.TTFTOff }
func itlOff(m *Method) Value  { return m.ITLOff }

var measures = map[Metric]measure{
	TTFT90:   {name: "TTFT p90", unit: "ms", scale: 1000, off: ttftOff},
	TTFT99:   {name: "TTFT p99", unit: "ms", scale: 1000, guard: true, off: ttftOff},
	ITLMean:  {name: "ITL", unit: "ms", scale: 1000, guard: true, off: itlOff},
	E2EMean:  {name: "E2E", unit: "s", scale: 1},
	Errors:   {name: "errors", unit: "points", scale: 100, guard: true, floor: 0.02},
	Fairness: {name: "fairness", unit: "", scale: 1, more: true, guard: true},
	Cached:   {name: "cached", unit: "points", scale: 100, more: true},
	Goodput:  {name: "goodput", unit: "req/s", scale: 1, more: true},
}

// of is the measure of a metric; one that is not known is written by its own name, unscaled.
func (m Metric) of() measure {
	if d, ok := measures[m]; ok {
		return d
	}
	return measure{name: string(m), scale: 1}
}

// name of the primary metric, at the start of a sentence.
func (p Primary) name() string {
	if p == SustainedRate {
		return "Sustained rate"
	}
	return "Requests within SLO"
}

func (p Primary) unit() string {
	if p == SustainedRate {
		return "req/s"
	}
	return "points"
}
