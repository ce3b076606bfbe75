package request

import "sync"

// Ratios learns, per model, how many bytes of decoded prompt text one token stands for, from the
// prompt tokens that engines report. The zero value is ready; methods are safe for concurrent use.
type Ratios struct {
	mu     sync.Mutex
	models map[string]*ratio
	other  ratio // shared by the models past the cap
}

// ratio keeps exponentially fading sums of bytes and tokens, so that long prompts weigh more: what
// is wanted is the length of prompts, not the mean of ratios.
type ratio struct{ bytes, tokens float64 }

const (
	maxRatioModels = 256  // client-chosen names must not grow memory without bound
	priorRatio     = 4.0  // bytes per token of English text with common tokenizers, before anything is learned
	priorTokens    = 256  // weight of the prior, in tokens
	ratioMemory    = 2e5  // tokens after which a sample has faded to 1/e
	minRatio       = 0.25 // a CJK character of three bytes may be several tokens
	maxRatio       = 64
)

// Estimate returns the expected number of prompt tokens of so many bytes, at least 1 for any text.
func (r *Ratios) Estimate(model string, bytes int) int {
	if bytes <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(1, int(float64(bytes)/r.at(model, false).value()+0.5))
}

// Learn notes that a prompt of so many decoded bytes was reported as so many tokens. Samples
// without text or tokens, and implausible ones, are ignored.
func (r *Ratios) Learn(model string, bytes, tokens int) {
	if bytes <= 0 || tokens <= 0 {
		return
	}
	if v := float64(bytes) / float64(tokens); v < minRatio || v > maxRatio {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.at(model, true)
	keep := 1 - min(float64(tokens)/ratioMemory, 0.5)
	a.bytes = a.bytes*keep + float64(bytes)
	a.tokens = a.tokens*keep + float64(tokens)
}

func (r *Ratios) at(model string, add bool) *ratio {
	if a := r.models[model]; a != nil {
		return a
	}
	if !add || len(r.models) >= maxRatioModels {
		return &r.other
	}
	if r.models == nil {
		r.models = make(map[string]*ratio)
	}
	a := new(ratio)
	r.models[model] = a
	return a
}

func (a *ratio) value() float64 {
	return (a.bytes + priorRatio*priorTokens) / (a.tokens + priorTokens)
}
