package admin

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router"
)

// Explained is one decision as it is shown: what `presage explain --json` prints. What is not known
// is absent. Text from clients is made safe to show.
type Explained struct {
	ID         string      `json:"id"`
	At         time.Time   `json:"at"`
	Policy     string      `json:"policy"`
	Arm        string      `json:"arm,omitempty"`
	Failed     string      `json:"failed,omitempty"`  // policy whose own answer could not be used
	Failure    string      `json:"failure,omitempty"` // why
	Model      string      `json:"model,omitempty"`
	Adapter    string      `json:"adapter,omitempty"`
	Stream     bool        `json:"stream"`
	Prompt     int         `json:"prompt_tokens"`
	Endpoint   string      `json:"endpoint"` // picked
	Reason     string      `json:"reason"`
	Why        string      `json:"why"` // the reason as a sentence
	Propensity float64     `json:"propensity"`
	Unit       string      `json:"unit,omitempty"`  // of terms and totals; a score is better when higher, all else when lower
	Terms      []string    `json:"terms,omitempty"` // names, in the order of each candidate's
	Candidates []Candidate `json:"candidates"`
	All        bool        `json:"all"`                // every endpoint is listed, not the best few
	Foretold   *Foretold   `json:"foretold,omitempty"` // of the picked endpoint; absent: nothing could be
	SLO        Levels      `json:"slo,omitzero"`
	Outcome    *Outcome    `json:"outcome,omitempty"` // absent: not ended
}

// Candidate is one endpoint at a decision.
type Candidate struct {
	Endpoint string   `json:"endpoint"`
	Picked   bool     `json:"picked,omitempty"`
	LeftOut  string   `json:"left_out,omitempty"` // by what
	Terms    []Figure `json:"terms,omitempty"`
	Total    Figure   `json:"total"`
	Chance   *float64 `json:"chance,omitempty"` // of being picked, where the policy draws

	Foretold *Foretold `json:"foretold,omitempty"` // where the policy used forecasts
	Cached   int       `json:"cached_tokens"`
	Requests int       `json:"inflight_requests"`
	Uncached int       `json:"inflight_uncached_tokens"`
	Waiting  *int      `json:"waiting,omitempty"`
	Running  *int      `json:"running,omitempty"`
	KV       *float64  `json:"kv_usage,omitempty"`
	Age      *int      `json:"scrape_age_ms,omitempty"`
}

// Figure is a term or a total. A policy that made none (not a number, infinite) shows as null.
type Figure float64

// MarshalJSON implements [json.Marshaler].
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(f), 'g', -1, 32), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Figure(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(f))
}

// Levels are times in milliseconds; 0: none.
type Levels struct {
	TTFT float64 `json:"ttft_ms,omitempty"`
	ITL  float64 `json:"itl_ms,omitempty"`
	E2E  float64 `json:"e2e_ms,omitempty"`
}

// Outcome is how a request ended.
type Outcome struct {
	Cause     string   `json:"cause"`
	Status    int      `json:"status,omitempty"`
	Served    string   `json:"served"` // endpoint
	Took      Levels   `json:"took"`
	Missed    []string `json:"missed"` // of ttft, itl, e2e
	Errors    *Errors  `json:"forecast_errors,omitempty"`
	Prompt    int      `json:"prompt_tokens"`
	Cached    *int     `json:"cached_tokens,omitempty"`
	Output    *int     `json:"output_tokens,omitempty"`
	Estimated bool     `json:"estimated,omitempty"` // token counts are the router's own
}

// explain turns what a shelf holds of a decision into its shown form. The caller holds the lock.
func (r *Ring) explain(s *shelf, h *head) *Explained {
	x := &Explained{
		ID: h.id.String(), At: h.at, Policy: h.policy, Arm: h.arm, Failed: h.failed, Failure: h.failure,
		Model: telemetry.Clean(h.model.String()), Adapter: telemetry.Clean(h.adapter.String()), Stream: h.stream,
		Prompt: h.tokens, Reason: h.reason.String(), Propensity: h.chance, Unit: h.unit, Terms: h.terms,
		Candidates: []Candidate{}, All: h.all,
		SLO: levels(h.slo.TTFT, h.slo.ITL, h.slo.E2E), Outcome: h.outcome(),
	}
	x.Foretold = newForetold(&h.ttft, &h.itl)
	if x.Outcome != nil {
		x.Outcome.Errors = h.errors()
	}
	e := router.Explanation{Reason: h.reason, Unit: h.unit, Terms: h.terms}
	cached := 0
	for i := range h.rows {
		w := s.row(h, i)
		c := r.candidate(h, w)
		c.Picked = i == h.picked
		if c.Picked {
			x.Endpoint, cached = c.Endpoint, c.Cached
		}
		x.Candidates = append(x.Candidates, c)
		for _, t := range w[fixedWords:][:len(h.terms)] {
			e.Values = append(e.Values, math.Float32frombits(t))
		}
		e.Totals = append(e.Totals, float32(c.Total))
		e.Filtered = append(e.Filtered, c.LeftOut)
	}
	if x.Endpoint == "" && h.picked >= 0 && h.picked < len(h.names) {
		x.Endpoint = h.names[h.picked].Name // a policy that does not explain itself
	}
	v := e.Verdict(h.picked, func(i int) string { return x.Candidates[i].Endpoint })
	v.Prompt, v.Cached, v.Propensity, v.Failed, v.Failure = h.tokens, cached, h.chance, h.failed, h.failure
	x.Why = v.Sentence()
	if h.picked < 0 { // only its end is known
		x.Endpoint, x.Why = h.out.served, ""
	}
	return x
}

func (r *Ring) candidate(h *head, w []uint32) Candidate {
	c := Candidate{
		LeftOut: r.filter(w), Total: Figure(math.Float32frombits(w[wordTotal])), Cached: int(w[wordCached]),
		Requests: int(w[wordLedger] & (1<<24 - 1)), Uncached: int(w[wordPending]),
		Waiting: reading(w[wordQueue] >> 16), Running: reading(w[wordQueue]), KV: gauge(w[wordGauges] >> 16),
		Age: reading(w[wordGauges]),
	}
	if i := int(w[wordIndex]); i < len(h.names) {
		c.Endpoint = h.names[i].Name
	}
	if c.Age != nil {
		*c.Age *= ageStep
	}
	if h.draws {
		p := float64(math.Float32frombits(w[wordChance]))
		c.Chance = &p
	}
	if c.LeftOut == "" {
		for _, t := range w[fixedWords:][:len(h.terms)] {
			c.Terms = append(c.Terms, Figure(math.Float32frombits(t)))
		}
		if h.fores {
			ttft, itl := foreOf(w[len(w)-foreWords:])
			c.Foretold = newForetold(&ttft, &itl)
		}
	}
	return c
}

func (h *head) outcome() *Outcome {
	o := &h.out
	if o.cause == fleet.Open {
		return nil
	}
	out := &Outcome{
		Cause: o.cause.String(), Status: int(o.status), Served: o.served, Took: levels(o.ttft, o.itl, o.e2e), Missed: []string{},
		Prompt: int(o.prompt), Cached: tokens(o.cached), Output: tokens(o.output),
		Estimated: !o.exactPrompt || o.output >= 0 && !o.exactOutput,
	}
	for _, l := range []struct {
		name          string
		actual, limit time.Duration
	}{{"ttft", o.ttft, h.slo.TTFT}, {"itl", o.itl, h.slo.ITL}, {"e2e", o.e2e, h.slo.E2E}} {
		if over(l.actual, l.limit) {
			out.Missed = append(out.Missed, l.name)
		}
	}
	return out
}

func tokens(n int32) *int {
	if n == features.Unknown {
		return nil
	}
	v := int(n)
	return &v
}

func levels(ttft, itl, e2e time.Duration) Levels {
	ms := func(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
	return Levels{TTFT: ms(ttft), ITL: ms(itl), E2E: ms(e2e)}
}

var (
	_ json.Marshaler   = Figure(0)
	_ json.Unmarshaler = (*Figure)(nil)
)
