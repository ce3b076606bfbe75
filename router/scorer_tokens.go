package router

// TokensScorer prefers endpoints with less prefill work of ours ahead: 1 - min(1, (U+u)/Capacity),
// with U the uncached tokens in flight whose first token has not come and u those of the request
// itself (llm-d-router's token-load score).
type TokensScorer struct {
	Capacity float64 // tokens that score 0; published: 4,194,304
}

// TokenLoadCapacity is the published capacity of the token-load score.
const TokenLoadCapacity = 4_194_304

// Name implements [Scorer].
func (TokensScorer) Name() string { return "tokens" }

// Category implements [Scorer].
func (TokensScorer) Category() Category { return Distribution }

// Score implements [Scorer].
func (c TokensScorer) Score(q *Query, keep []bool, out []float64) {
	for i, k := range keep {
		if k {
			load := float64(q.Snap.States[i].Uncached) + float64(q.UncachedTokens(i))
			out[i] = 1 - min(1, load/c.Capacity)
		}
	}
}

var _ Scorer = TokensScorer{}
