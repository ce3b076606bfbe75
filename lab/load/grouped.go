package load

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Range is a closed range of numbers of tokens; draws from it are uniform.
type Range struct{ Min, Max int }

func (r Range) draw(rng *rand.Rand) int { return r.Min + rng.IntN(r.Max-r.Min+1) }

// Grouped describes completions that share beginnings: Poisson arrivals, each with the prefix of one
// of some groups, all as likely, then a question of its own.
type Grouped struct {
	Groups                   int // at least 1
	Prefix, Question, Output Range
	Rate                     float64 // requests per second
	Duration                 time.Duration
	SLO                      SLO
	Seed                     uint64 // of arrivals, lengths and the choice of groups
	Text                     uint64 // of the text alone: other texts find no cache of an earlier run
}

// Workload makes the requests: a function of what is described, and of nothing else. Another Text
// changes no time and no length.
func (g *Grouped) Workload() *Workload {
	rng := rand.New(rand.NewPCG(g.Seed, 0x67726f7570))
	words := rand.New(rand.NewPCG(g.Text, 0x74657874))
	w := &Workload{
		About:    fmt.Sprintf("%d prefixes of %d to %d tokens, %g requests per second", g.Groups, g.Prefix.Min, g.Prefix.Max, g.Rate),
		Duration: g.Duration, SLO: g.SLO,
	}
	prefixes := make([]Part, g.Groups)
	for i := range prefixes {
		prefixes[i] = Part{Seed: words.Uint64(), Tokens: g.Prefix.draw(rng)}
	}
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() / g.Rate * float64(time.Second))
		if at >= g.Duration {
			return w
		}
		w.Jobs = append(w.Jobs, Job{
			At:     at,
			Parts:  []Part{prefixes[rng.IntN(len(prefixes))], {Seed: words.Uint64(), Tokens: g.Question.draw(rng)}},
			Output: g.Output.draw(rng),
		})
	}
}
