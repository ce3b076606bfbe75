package priors

import (
	"fmt"
	"math"

	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/predictor"
)

// Fit finds the law that comes nearest to an engine in relative error, no coefficient below zero:
// first the time of a decode step, then TTFT, of which that of an idle engine counts most. An engine
// bends where its batches turn from bound by bandwidth to bound by arithmetic, and the law is
// straight: the fit spreads what is left, so that no size of prompt or batch is off by much.
func Fit(coefs engine.Coefs) (predictor.Law, error) {
	e, err := engine.New(engine.Config{Coefs: coefs})
	if err != nil {
		return predictor.Law{}, err
	}
	_, budget := engine.Limits(coefs.GPU)
	law := predictor.Law{Budget: float64(budget)}
	var steps system
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256} {
		for _, context := range []int{256, 1024, 4096} {
			steps.add(1, StepTime(e, n, n*context), 1, float64(n), float64(n*context))
		}
	}
	copy(law.Phi[:], steps.balanced())
	var firsts system
	for _, s := range situations() {
		row := s.row(&law)
		weight := 0.05
		if s.streams == 0 && s.ahead == 0 {
			weight = 1
		}
		firsts.add(weight, s.TTFT(e, budget), row[:]...)
	}
	copy(law.Theta[:], firsts.balanced())
	if err := law.Check(); err != nil {
		return law, fmt.Errorf("%s: %w", coefs.String(), err)
	}
	return law, nil
}

// StepTime is the time of a decode step, in seconds.
func StepTime(e *engine.Engine, streams, context int) float64 {
	return e.StepTime(streams, context) / 1e6
}

// Situation is a prompt that comes to an engine with answers streaming and prompts queued.
type Situation struct {
	streams, ahead int // answers of 1,000 tokens of context each; prompts of 2,000 tokens
	uncached       int
}

// Cold is a prompt of so many tokens that comes to an idle engine.
func Cold(uncached int) Situation { return Situation{uncached: uncached} }

const (
	streamContext = 1000
	aheadTokens   = 2000
)

func situations() []Situation {
	var all []Situation
	for _, u := range []int{16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768} {
		for _, streams := range []int{0, 8, 32, 96} {
			for _, ahead := range []int{0, 2, 8} {
				all = append(all, Situation{streams, ahead, u})
			}
		}
	}
	return all
}

// row is the law's row for the situation: see [predictor.Law].
func (s Situation) row(l *predictor.Law) [4]float64 {
	tokens, u := float64(s.ahead*aheadTokens+s.uncached), float64(s.uncached)
	attention := float64(s.ahead)*aheadTokens*aheadTokens/2 + u*u/2
	step := l.Phi[0] + l.Phi[1]*float64(s.streams) + l.Phi[2]*float64(s.streams*streamContext)
	return [4]float64{1, tokens, attention, (1.5 + math.Ceil(tokens/l.Budget)) * step}
}

// Said is the law's TTFT, in seconds.
func (s Situation) Said(l *predictor.Law) float64 {
	var sum float64
	for i, v := range s.row(l) {
		sum += l.Theta[i] * v
	}
	return sum
}

// TTFT is what the engine takes, in seconds: its frontend, on average half of the running step and
// all of the one already planned where answers stream, then steps full of prefill until the prompt's
// last token, prompts in order.
func (s Situation) TTFT(e *engine.Engine, budget int) float64 {
	p := engine.Async()
	t := float64(p.Frontend.Microseconds())
	context := s.streams * streamContext
	if s.streams > 0 {
		t += (0.5 + float64(p.Lag)) * e.StepTime(s.streams, context)
	}
	prompts := make([]int, 0, s.ahead+1)
	for range s.ahead {
		prompts = append(prompts, aheadTokens)
	}
	prompts = append(prompts, s.uncached)
	done := 0 // of the first prompt
	for len(prompts) > 0 {
		room := budget - s.streams
		var chunks [][2]int
		for room > 0 && len(prompts) > 0 {
			n := min(room, prompts[0]-done)
			chunks = append(chunks, [2]int{n, done})
			room, done = room-n, done+n
			if done == prompts[0] {
				prompts, done = prompts[1:], 0
			}
		}
		t += e.StepTime(s.streams, context, chunks...)
	}
	return t / 1e6
}
