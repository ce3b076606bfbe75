package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/presage-router/presage/internal/spell"
)

// Measure is one figure of a run that tables and comparisons show.
type Measure struct {
	Name  string // in JSON and of columns, with its unit
	Title string // of a table's column
	About string // one line
	Of    Metric // NaN where a run has it not
	Good  int    // 1: more is better, -1: less is better, 0: neither
	// Answered says that it is of answered requests alone, and so compares different requests where
	// different numbers were answered.
	Answered bool
	Digits   int // after the point, in tables
	Percent  bool
}

// KneeMetric is the metric of comparisons of knees, and Primary the one of a single load.
const (
	KneeMetric    = "knee"
	PrimaryMetric = "slo_attainment"
)

// Measures are all figures, in the order of tables.
func Measures() []Measure {
	list := []Measure{
		{Name: PrimaryMetric, Title: "in SLO %", About: "share of requests that kept every SLO they carried; refused and unfinished ones did not", Of: func(r *Result) float64 { return r.Attainment }, Good: 1, Digits: 1, Percent: true},
		{Name: "goodput_rps", Title: "goodput/s", About: "requests per second that kept every SLO", Of: func(r *Result) float64 { return r.Goodput }, Good: 1, Digits: 1},
	}
	for _, t := range []struct {
		name, title string
		of          func(*Result) Times
	}{
		{"ttft", "TTFT", func(r *Result) Times { return r.TTFT }},
		{"itl", "ITL", func(r *Result) Times { return r.ITL }},
		{"e2e", "E2E", func(r *Result) Times { return r.E2E }},
	} {
		for _, q := range []struct {
			name, title string
			of          func(Times) float64
		}{
			{"mean", "mean", func(t Times) float64 { return t.Mean }},
			{"p50", "p50", func(t Times) float64 { return t.P50 }},
			{"p90", "p90", func(t Times) float64 { return t.P90 }},
			{"p99", "p99", func(t Times) float64 { return t.P99 }},
		} {
			digits := 0
			if t.name == "itl" {
				digits = 1
			}
			list = append(list, Measure{
				Name: t.name + "_" + q.name + "_ms", Title: t.title + " " + q.title, About: "milliseconds, of answered requests",
				Of: func(r *Result) float64 { return 1e3 * q.of(t.of(r)) }, Good: -1, Answered: true, Digits: digits,
			})
		}
	}
	return append(list,
		Measure{Name: "tokens_per_s", Title: "tokens/s", About: "generated tokens per second", Of: func(r *Result) float64 { return r.Tokens }, Good: 1},
		Measure{Name: "answered_ratio", Title: "answered %", About: "share of requests answered to the end", Of: func(r *Result) float64 { return float64(r.Answered) / float64(r.Requests) }, Good: 1, Digits: 1, Percent: true},
		Measure{Name: "hit_ratio", Title: "cached %", About: "share of prompt tokens served from caches", Of: func(r *Result) float64 { return r.Hit }, Digits: 1, Percent: true},
		Measure{Name: "recomputed_tokens", Title: "recomputed", About: "prompt tokens computed again although an engine had computed them before", Of: func(r *Result) float64 { return r.Recomputed }},
		Measure{Name: "recomputed_ratio", Title: "recomputed %", About: "the same as a share of all prompt tokens", Of: func(r *Result) float64 { return r.Recomputed / r.Prompt }, Digits: 1, Percent: true},
		Measure{Name: "preemptions_per_1000", Title: "preempted ‰", About: "preemptions per 1,000 requests", Of: func(r *Result) float64 { return 1e3 * float64(r.Preempted) / float64(r.Requests) }, Good: -1, Digits: 1},
		Measure{Name: "load_cv", Title: "load CV", About: "coefficient of variation of requests per engine", Of: func(r *Result) float64 { return r.LoadCV }, Digits: 2},
		Measure{Name: "herd_index", Title: "herd", About: "largest share of a second's arrivals that one engine got, in multiples of an even share", Of: func(r *Result) float64 { return r.Herd }, Digits: 2},
		Measure{Name: "fairness", Title: "fairness", About: "Jain's index over what SLO classes attained, or tenants where there is one class", Of: (*Result).Fairness, Good: 1, Digits: 3},
		Measure{Name: "changed_ratio", Title: "changed %", About: "share of requests that another engine served than under the reference policy", Of: func(r *Result) float64 { return r.Changed }, Digits: 1, Percent: true},
	)
}

// MeasureOf returns the measure of that name. An unknown one gets the nearest known in the error.
func MeasureOf(name string) (Measure, error) {
	all := Measures()
	names := make([]string, 0, len(all))
	for _, m := range all {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Measure{}, fmt.Errorf("%q unknown; did you mean %s? there are %s", name, spell.Nearest(name, names), strings.Join(names, ", "))
}

// Format is a value as tables show it; a dash where there is none.
func (m *Measure) Format(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if m.Percent {
		v *= 100
	}
	return fmt.Sprintf("%.*f", m.Digits, v)
}
