package engine

import (
	"bytes"
	_ "embed" // the coefficients
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed coefs.json
var coefsJSON []byte

// Coefs are the step-time coefficients of one engine: GPU type x model x tensor-parallel width.
// Times are microseconds. See [Coefs.Knots] for the formula's names in engine-model terms.
type Coefs struct {
	GPU   string `json:"gpu"`   // short name: H100, H200, A100, L40S, B200
	Model string `json:"model"` // as llama-3.1-8b
	TP    int    `json:"tp"`    // tensor-parallel width
	DType string `json:"dtype"` // of the weights: bfloat16 or fp8

	// Knots are numbers of batched tokens, rising; G[i] is the time of all layers' work outside
	// attention for Knots[i] tokens. Linear between knots, the last slope beyond.
	Knots []float64 `json:"knots"`
	G     []float64 `json:"G"`

	PrefillFix  float64 `json:"pf_fix"`  // once, in steps with prefill
	PrefillLin  float64 `json:"pf_lin"`  // per prefill token
	PrefillQuad float64 `json:"pf_quad"` // per prefill token and token before it
	DecodeFix   float64 `json:"dec_fix"` // once, in steps without prefill
	DecodeSeq   float64 `json:"dec_seq"` // per decoding request
	DecodeKV    float64 `json:"dec_kv"`  // per token of context of the decoding requests

	LM1   float64 `json:"lm1"`   // LM head for a batch of 1
	LM64  float64 `json:"lm64"`  // of 64
	LM256 float64 `json:"lm256"` // of 256

	KVTokens int `json:"kv_tokens"` // KV capacity in tokens
	KVBlocks int `json:"kv_blocks"` // the same in blocks of 16, the null block included
}

// Table is a set of engines.
type Table []Coefs

// Builtin returns the 25 engines whose coefficients come with the package.
func Builtin() (Table, error) {
	t, err := Load(bytes.NewReader(coefsJSON))
	if err != nil {
		return nil, fmt.Errorf("coefs.json: %w", err)
	}
	return t, nil
}

// fit holds fields of the file that the model does not need: the closed form of dense models and
// figures derived from the others.
type fit struct {
	W0    float64 `json:"w0"`
	W1    float64 `json:"w1"`
	G0    float64 `json:"g0"`
	G1    float64 `json:"g1"`
	RPeak float64 `json:"rpeak8k"`
	Base  float64 `json:"base"`
	LMSeq float64 `json:"lm_seq"`
}

// Load reads a table in the format of coefs.json: a JSON array of engines. GPU names are shortened
// (h100_sxm is H100). Unknown fields, missing or impossible values, and engines named twice are errors.
func Load(r io.Reader) (Table, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var rows []struct {
		Coefs
		fit
	}
	if err := d.Decode(&rows); err != nil {
		return nil, fmt.Errorf("cannot parse engine coefficients: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("cannot parse engine coefficients: more data after the array")
	}
	t := make(Table, 0, len(rows))
	for i := range rows {
		c := rows[i].Coefs
		c.GPU, c.Model, c.DType = ShortGPU(c.GPU), strings.ToLower(c.Model), shortDType(c.DType)
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("engine %d (%s): %w", i, c.String(), err)
		}
		for _, o := range t {
			if o.String() == c.String() {
				return nil, fmt.Errorf("engine %d (%s): named twice", i, c.String())
			}
		}
		t = append(t, c)
	}
	return t, nil
}

// String names the engine, as H100/llama-3.1-8b/tp1/bfloat16.
func (c *Coefs) String() string {
	return fmt.Sprintf("%s/%s/tp%d/%s", c.GPU, c.Model, c.TP, c.DType)
}

// MoE reports whether the model is a mixture of experts.
func (c *Coefs) MoE() bool {
	s, ok := ShapeOf(c.Model)
	return ok && s.MoE
}

func (c *Coefs) check() error {
	switch {
	case c.GPU == "" || c.Model == "":
		return fmt.Errorf("gpu and model must be named")
	case c.TP < 1 || c.TP > 64:
		return fmt.Errorf("tp %d: not within 1 and 64", c.TP)
	case len(c.Knots) < 2 || len(c.Knots) != len(c.G):
		return fmt.Errorf("%d knots with %d times: want as many of both, at least 2", len(c.Knots), len(c.G))
	case c.KVBlocks < 2 || c.KVBlocks > maxBlocks:
		return fmt.Errorf("kv_blocks %d: not within 2 and %d", c.KVBlocks, maxBlocks)
	}
	for i, k := range c.Knots {
		switch {
		case !within(k, 1, 1e7) || (i > 0 && k <= c.Knots[i-1]):
			return fmt.Errorf("knot %d is %v tokens: not rising from 1", i, k)
		case !within(c.G[i], 1, 1e8):
			return fmt.Errorf("knot %v takes %v us: not within 1 and 1e8", k, c.G[i])
		}
	}
	named := []struct {
		name string
		v    float64
	}{
		{"pf_fix", c.PrefillFix}, {"pf_lin", c.PrefillLin}, {"pf_quad", c.PrefillQuad}, {"dec_fix", c.DecodeFix},
		{"dec_seq", c.DecodeSeq}, {"dec_kv", c.DecodeKV}, {"lm1", c.LM1}, {"lm64", c.LM64}, {"lm256", c.LM256},
	}
	for _, n := range named {
		if !within(n.v, 0, 1e8) {
			return fmt.Errorf("%s %v us: not within 0 and 1e8", n.name, n.v)
		}
	}
	return nil
}

// Find returns the engine for a GPU type, model and tensor-parallel width. A width of 0 is the
// narrowest there is, an empty dtype bfloat16 before others. Names are compared without case, GPU
// names by their short form.
func (t Table) Find(gpu, model string, tp int, dtype string) (*Coefs, error) {
	gpu, model, dtype = ShortGPU(gpu), strings.ToLower(model), shortDType(dtype)
	var best *Coefs
	for i := range t {
		c := &t[i]
		if c.GPU != gpu || c.Model != model || (tp > 0 && c.TP != tp) || (dtype != "" && c.DType != dtype) {
			continue
		}
		if best == nil || (c.DType == "bfloat16") != (best.DType == "bfloat16") && c.DType == "bfloat16" ||
			c.DType == best.DType && c.TP < best.TP {
			best = c
		}
	}
	if best != nil {
		return best, nil
	}
	var have []string
	for i := range t {
		if t[i].GPU == gpu || t[i].Model == model {
			have = append(have, t[i].String())
		}
	}
	if len(have) == 0 {
		for i := range t {
			have = append(have, t[i].String())
		}
	}
	slices.Sort(have)
	return nil, fmt.Errorf("no coefficients for %s; there are %s", (&Coefs{GPU: gpu, Model: model, TP: tp, DType: dtype}).String(), strings.Join(have, ", "))
}

// ShortGPU maps names of GPU types to the short ones used here: h100_sxm, NVIDIA-H100-80GB-HBM3
// and h100 are all H100. Names of other GPUs are returned in upper case.
func ShortGPU(name string) string {
	up := strings.ToUpper(strings.TrimSpace(name))
	for _, g := range memories() {
		if up == g.GPU || strings.Contains(up, g.GPU) {
			return g.GPU
		}
	}
	return up
}

func shortDType(s string) string {
	switch s = strings.ToLower(s); s {
	case "bf16":
		return "bfloat16"
	case "float8", "fp8_e4m3":
		return "fp8"
	}
	return s
}
