package router

// Reason says in one word why the winner won; the sentence is chosen from templates by it.
type Reason uint8

// The reasons of a decision.
const (
	NoReason   Reason = iota
	ByCache           // holds more of the prompt
	ByQueue           // less work ahead
	BySpeed           // faster hardware
	ByHeadroom        // more ITL headroom
	ByTie             // equal to others, tie broken
	ByDraw            // a random draw
	ByRotation        // its turn
	BySession         // the session's endpoint
	ByExplore         // an exploratory draw
	ByFallback        // the policy could not decide
	OnlyOne           // the only candidate
	ByMemory          // more KV cache free
	ByAdapter         // the LoRA adapter is loaded
)

// String returns the reason's name in metrics.
func (r Reason) String() string {
	switch r {
	case NoReason:
		return "none"
	case ByCache:
		return "cache"
	case ByQueue:
		return "queue"
	case BySpeed:
		return "speed"
	case ByHeadroom:
		return "itl_headroom"
	case ByTie:
		return "tie"
	case ByDraw:
		return "draw"
	case ByRotation:
		return "rotation"
	case BySession:
		return "session"
	case ByExplore:
		return "explore"
	case ByFallback:
		return "fallback"
	case OnlyOne:
		return "only_one"
	case ByMemory:
		return "memory"
	case ByAdapter:
		return "adapter"
	}
	return "unknown"
}

// Explanation holds the numbers behind a decision, filled without allocation: one row of additive
// terms per endpoint of the snapshot. Terms are named once by the policy; row i speaks of
// Snap.States[i]; Totals[i] is the sum of row i to rounding.
type Explanation struct {
	Unit     string    // "score" (higher wins); any other is a cost (lower wins): "ms", "requests", "tokens", …
	Reason   Reason    // why the winner won
	Terms    []string  // column names; owned by the policy, not copied, never changed
	Values   []float32 // row-major, len(Totals) x len(Terms)
	Totals   []float32
	Filtered []string  // per row: what took it out ("draining", the name of a filter), or ""
	Drawn    []float32 // per row: probability of being picked, where the policy draws; else empty
}

// Reset makes the explanation empty, keeping its memory.
func (e *Explanation) Reset() {
	*e = Explanation{Values: e.Values[:0], Totals: e.Totals[:0], Filtered: e.Filtered[:0], Drawn: e.Drawn[:0]}
}

// Size prepares n rows for the given terms, zeroed, and returns the flat values.
func (e *Explanation) Size(unit string, terms []string, n int) []float32 {
	e.Unit, e.Terms = unit, terms
	e.Values = zeroed(e.Values, n*len(terms))
	e.Totals = zeroed(e.Totals, n)
	e.Filtered = zeroed(e.Filtered, n)
	return e.Values
}

// HigherWins reports the sense of the totals: scores are gains, everything else is a cost.
func (e *Explanation) HigherWins() bool { return e.Unit == unitScore }

const unitScore = "score"

// leftOut notes why endpoints were no candidates at all; what a policy noted itself stays.
func (e *Explanation) leftOut(out []string) {
	if len(e.Filtered) != len(out) {
		return // a policy that does not explain itself
	}
	for i, why := range out {
		if why != "" {
			e.Filtered[i] = why
		}
	}
}

// Row returns the terms of endpoint i.
func (e *Explanation) Row(i int) []float32 {
	return e.Values[i*len(e.Terms) : (i+1)*len(e.Terms)]
}

// zeroed returns s with length n and zero values, growing it only when it must.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
