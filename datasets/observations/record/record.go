// Package record is one row of an exported file of finished requests, and its JSON line. It is what a
// service can hand out without the rest of package observations.
package record

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unique"

	"github.com/go-json-experiment/json"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// Record is one row of a file, as columns of Parquet or members of an object.
type Record struct {
	ID       string    `json:"id" parquet:"id"`
	At       time.Time `json:"at" parquet:"at,timestamp(nanosecond)"`
	API      string    `json:"api" parquet:"api,dict"`
	Model    string    `json:"model" parquet:"model,dict"`
	Adapter  string    `json:"adapter,omitzero" parquet:"adapter,dict"`
	Stream   bool      `json:"stream" parquet:"stream"`
	SLOTTFT  *float64  `json:"slo_ttft_ms,omitzero" parquet:"slo_ttft_ms,optional"`
	SLOITL   *float64  `json:"slo_itl_ms,omitzero" parquet:"slo_itl_ms,optional"`
	SLOE2E   *float64  `json:"slo_e2e_ms,omitzero" parquet:"slo_e2e_ms,optional"`
	Priority int64     `json:"priority" parquet:"priority"`

	Endpoint   string  `json:"endpoint" parquet:"endpoint,dict"`
	Picked     string  `json:"picked" parquet:"picked,dict"`
	Policy     string  `json:"policy" parquet:"policy,dict"`
	Arm        string  `json:"arm,omitzero" parquet:"arm,dict"`
	Propensity float64 `json:"propensity" parquet:"propensity"`
	Session    uint64  `json:"session,omitzero" parquet:"session"`                    // a hash; 0: no session
	Among      int64   `json:"choice_among,omitzero" parquet:"choice_among"`          // endpoints drawn from; 0: nothing was drawn
	Rank       int64   `json:"choice_rank,omitzero" parquet:"choice_rank"`            // of the one picked; 0: the policy's own pick
	ChoiceTTFT numbers `json:"choice_ttft_ms,omitzero" parquet:"choice_ttft_ms,list"` // foretold of each, mean

	Schema      string  `json:"schema" parquet:"schema,dict"`
	X           numbers `json:"x" parquet:"x,list"`
	ClassModel  string  `json:"class_model" parquet:"class_model,dict"`
	ClassGPU    string  `json:"class_gpu" parquet:"class_gpu,dict"`
	ClassEngine string  `json:"class_engine" parquet:"class_engine,dict"`
	ClassTP     int64   `json:"class_tp" parquet:"class_tp"` // 0: no class
	Slot        int64   `json:"slot" parquet:"slot"`
	Instance    uint64  `json:"instance" parquet:"instance"`

	ForeTTFT numbers `json:"fore_ttft_ms,omitzero" parquet:"fore_ttft_ms,list"` // mean, P50, P90, P99
	ForeITL  numbers `json:"fore_itl_ms,omitzero" parquet:"fore_itl_ms,list"`
	Price    numbers `json:"price_ms,omitzero" parquet:"price_ms,list"` // first token, KV wait, prefill, gap, decode; sigma is a ratio
	Said     numbers `json:"said,omitzero" parquet:"said,list"`         // what each forecaster said, TTFT then ITL, logarithms of seconds

	HitBlocks int64 `json:"hit_blocks" parquet:"hit_blocks"`
	HitTokens int64 `json:"hit_tokens" parquet:"hit_tokens"`
	Blocks    int64 `json:"blocks" parquet:"blocks"`

	MaxTokens    *int64 `json:"max_tokens,omitzero" parquet:"max_tokens,optional"`
	PromptTokens *int64 `json:"prompt_tokens,omitzero" parquet:"prompt_tokens,optional"`
	ExactPrompt  bool   `json:"exact_prompt" parquet:"exact_prompt"`
	CachedTokens *int64 `json:"cached_tokens,omitzero" parquet:"cached_tokens,optional"`
	OutputTokens *int64 `json:"output_tokens,omitzero" parquet:"output_tokens,optional"`
	ExactOutput  bool   `json:"exact_output" parquet:"exact_output"`

	TTFT   *float64 `json:"ttft_ms,omitzero" parquet:"ttft_ms,optional"`
	ITL    *float64 `json:"itl_ms,omitzero" parquet:"itl_ms,optional"`
	E2E    *float64 `json:"e2e_ms,omitzero" parquet:"e2e_ms,optional"`
	Cause  string   `json:"cause" parquet:"cause,dict"`
	Status int64    `json:"status" parquet:"status"`
}

// Of returns the row of a finished request.
func Of(o *features.Observation) Record {
	r := Record{
		ID: o.ID, At: o.At.UTC().Round(0), API: o.API.String(), Model: o.Model, Adapter: o.Adapter, Stream: o.Stream,
		SLOTTFT: ms(o.SLO.TTFT), SLOITL: ms(o.SLO.ITL), SLOE2E: ms(o.SLO.E2E), Priority: int64(o.Priority),
		Endpoint: o.Endpoint, Picked: o.Picked, Policy: o.Policy, Arm: o.Arm, Propensity: o.Propensity,
		Session: o.Session, Among: int64(o.Choice.Among), Rank: int64(o.Choice.Rank), ChoiceTTFT: choiceTimes(&o.Choice),
		Schema: string(o.Schema), Slot: int64(o.Where.Slot), Instance: o.Where.Instance,
		HitBlocks: int64(o.HitBlocks), HitTokens: int64(o.HitTokens), Blocks: int64(o.Blocks),
		PromptTokens: count(o.PromptTokens), ExactPrompt: o.ExactPrompt, CachedTokens: count(o.CachedTokens),
		OutputTokens: count(o.OutputTokens), ExactOutput: o.ExactOutput,
		TTFT: ms(o.TTFT), ITL: ms(o.ITL), E2E: ms(o.E2E), Cause: o.Cause.String(), Status: int64(o.Status),
	}
	if o.MaxTokens > 0 {
		r.MaxTokens = count(o.MaxTokens)
	}
	if o.Where.Class != (fleet.ClassID{}) {
		c := o.Where.Class.Value()
		r.ClassModel, r.ClassGPU, r.ClassEngine, r.ClassTP = c.Model, c.GPU, c.Engine, int64(max(c.TP, 1))
	}
	if o.Schema == "" {
		return r
	}
	r.X = append(numbers(nil), o.X[:]...)
	if f := &o.Fore; *f != (features.Forecast{}) {
		r.ForeTTFT, r.ForeITL = quantiles(&f.TTFT), quantiles(&f.ITL)
		r.Price = numbers{1e3 * f.Price.First, 1e3 * f.Price.KVWait, 1e3 * f.Price.Prefill, 1e3 * f.Price.Gap, 1e3 * f.Price.Decode, f.Price.Sigma}
		r.Said = append(append(make(numbers, 0, 2*features.Members), o.Said[0][:]...), o.Said[1][:]...)
	}
	return r
}

// Append appends the row of a finished request as a line of JSON.
func Append(dst []byte, o *features.Observation) ([]byte, error) {
	r := Of(o)
	line, err := json.Marshal(&r)
	if err != nil {
		return dst, err
	}
	return append(append(dst, line...), '\n'), nil
}

// Parse reads the line of a row. Members that rows do not have are an error.
func Parse(line []byte) (Record, error) {
	var r Record
	return r, json.Unmarshal(line, &r, json.RejectUnknownMembers(true))
}

// ErrSchema is the reason for which a row of another schema is left out.
var ErrSchema = errors.New("other schema")

// Observation turns a row back into o, after checking it; the error names the column that is at fault,
// and is [ErrSchema] where the features are those of another version.
func (r *Record) Observation(o *features.Observation) error {
	*o = features.Observation{
		ID: r.ID, At: r.At, Model: r.Model, Adapter: r.Adapter, Stream: r.Stream, Endpoint: r.Endpoint, Picked: r.Picked,
		Policy: r.Policy, Arm: r.Arm, Propensity: r.Propensity, Schema: features.SchemaID(r.Schema),
		Session: r.Session, ExactPrompt: r.ExactPrompt, ExactOutput: r.ExactOutput, Said: features.Nothing(),
	}
	c := checker{}
	o.API = request.API(c.name("api", r.API, int(request.Audio), func(i int) string { return request.API(i).String() }))
	o.Cause = fleet.Cause(c.name("cause", r.Cause, int(fleet.Internal), func(i int) string { return fleet.Cause(i).String() }))
	o.SLO = request.SLO{TTFT: c.span("slo_ttft_ms", r.SLOTTFT), ITL: c.span("slo_itl_ms", r.SLOITL), E2E: c.span("slo_e2e_ms", r.SLOE2E)}
	o.TTFT, o.ITL, o.E2E = c.span("ttft_ms", r.TTFT), c.span("itl_ms", r.ITL), c.span("e2e_ms", r.E2E)
	o.Priority = int(r.Priority)
	o.HitBlocks, o.HitTokens, o.Blocks = c.number("hit_blocks", r.HitBlocks), c.number("hit_tokens", r.HitTokens), c.number("blocks", r.Blocks)
	o.MaxTokens = max(0, c.count("max_tokens", r.MaxTokens))
	o.PromptTokens, o.CachedTokens, o.OutputTokens = c.count("prompt_tokens", r.PromptTokens), c.count("cached_tokens", r.CachedTokens), c.count("output_tokens", r.OutputTokens)
	o.Status = c.number("status", r.Status)
	if o.Status > 999 {
		c.fail("status", r.Status)
	}
	if !(r.Propensity >= 0 && r.Propensity <= 1) {
		c.fail("propensity", r.Propensity)
	}
	if r.At.IsZero() || r.At.Year() < 1970 || r.At.Year() > 2261 {
		c.fail("at", r.At)
	}
	if tp := c.number("class_tp", r.ClassTP); tp > 0 {
		o.Where.Class = unique.Make(fleet.Class{Model: r.ClassModel, GPU: r.ClassGPU, Engine: r.ClassEngine, TP: tp})
	}
	o.Where.Instance = r.Instance
	if o.Where.Slot = int32(r.Slot); int64(o.Where.Slot) != r.Slot || r.Slot < -1 {
		c.fail("slot", r.Slot)
	}
	r.choice(&c, &o.Choice)
	if c.err != nil || r.Schema == "" {
		return c.err
	}
	return r.vectors(o)
}

func (r *Record) choice(c *checker, to *features.Choice) {
	if r.Among < 0 || r.Among > features.MostExplored {
		c.fail("choice_among", r.Among)
		return
	}
	if r.Rank < 0 || r.Rank >= max(r.Among, 1) {
		c.fail("choice_rank", r.Rank)
		return
	}
	to.Among, to.Rank = int(r.Among), int(r.Rank)
	if len(r.ChoiceTTFT) == 0 {
		return
	}
	c.vector("choice_ttft_ms", r.ChoiceTTFT, to.TTFT[:to.Among])
	for i, v := range to.TTFT[:to.Among] {
		if !(v >= 0 && v <= maxMillis) {
			c.fail("choice_ttft_ms", v)
		}
		to.TTFT[i] = v / 1e3
	}
}

func choiceTimes(c *features.Choice) numbers {
	var out numbers
	for _, v := range c.TTFT[:c.Among] {
		out = append(out, 1e3*v)
	}
	return out
}

func (r *Record) vectors(o *features.Observation) error {
	if r.Schema != string(schema) {
		return fmt.Errorf("schema: %.40q: this program reads %s: %w", r.Schema, schema, ErrSchema)
	}
	c := checker{}
	c.vector("x", r.X, o.X[:])
	for _, v := range r.X {
		if math.IsInf(float64(v), 0) {
			c.fail("x", v)
		}
	}
	if len(r.Said) > 0 {
		var said [2 * features.Members]float32
		c.vector("said", r.Said, said[:])
		copy(o.Said[0][:], said[:features.Members])
		copy(o.Said[1][:], said[features.Members:])
	}
	for name, p := range map[string]struct {
		from numbers
		to   []*float32
	}{
		"fore_ttft_ms": {r.ForeTTFT, []*float32{&o.Fore.TTFT.Mean, &o.Fore.TTFT.P50, &o.Fore.TTFT.P90, &o.Fore.TTFT.P99}},
		"fore_itl_ms":  {r.ForeITL, []*float32{&o.Fore.ITL.Mean, &o.Fore.ITL.P50, &o.Fore.ITL.P90, &o.Fore.ITL.P99}},
		"price_ms":     {r.Price, []*float32{&o.Fore.Price.First, &o.Fore.Price.KVWait, &o.Fore.Price.Prefill, &o.Fore.Price.Gap, &o.Fore.Price.Decode, &o.Fore.Price.Sigma}},
	} {
		if len(p.from) == 0 {
			continue
		}
		v := make([]float32, len(p.to))
		c.vector(name, p.from, v)
		for i := range v {
			if !(v[i] >= 0) || math.IsInf(float64(v[i]), 0) {
				c.fail(name, v[i])
			}
			*p.to[i] = v[i] / 1e3
		}
		if name == "price_ms" {
			o.Fore.Price.Sigma *= 1e3 // a ratio
		}
	}
	return c.err
}

var schema = features.Schema()

func quantiles(p *features.Prediction) numbers {
	return numbers{1e3 * p.Mean, 1e3 * p.P50, 1e3 * p.P90, 1e3 * p.P99}
}

// ms is a time, or nil where there is none.
func ms(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	v := float64(d) / 1e6
	return &v
}

// count is a number, or nil where it is unknown.
func count(n int) *int64 {
	if n < 0 {
		return nil
	}
	v := int64(n)
	return &v
}
