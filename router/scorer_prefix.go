package router

// PrefixScorer prefers endpoints that hold more of the prompt: M*min(1, c/8192)^2 + (1-M)*h, with c
// the cached tokens, h their share of the prompt and M the weight of absolute length (llm-d-router's
// prefix-cache-scorer; its default M is 0). Without text every endpoint scores 0.
type PrefixScorer struct {
	LengthWeight float64 // M, 0..1
}

// longMatch is the match, in tokens, from which the length part is full (llm-d-router).
const longMatch = 8192

// Name implements [Scorer].
func (PrefixScorer) Name() string { return "prefix" }

// Category implements [Scorer].
func (PrefixScorer) Category() Category { return Affinity }

// Score implements [Scorer].
func (c PrefixScorer) Score(q *Query, keep []bool, out []float64) {
	for i, k := range keep {
		if !k {
			continue
		}
		h := q.HitRatio(i)
		long := min(1, h*float64(q.Req.PromptTokens)/longMatch)
		out[i] = c.LengthWeight*long*long + (1-c.LengthWeight)*h
	}
}

var _ Scorer = PrefixScorer{}
