package load

import (
	"fmt"
	"math"
	"time"

	"github.com/presage-router/presage/internal/stat"
)

// Outcome is what a client saw of one request. Times are on the engines' clock, from when the
// request was due.
type Outcome struct {
	At     time.Duration // when it was due, from the start
	Err    error         // nil: a complete answer of the expected length
	TTFT   time.Duration // first token
	ITL    time.Duration // mean gap between tokens after the first; 0: one token
	E2E    time.Duration // end of the answer
	Prompt int           // tokens, as the engine reported
	Cached int           // of these from its cache
	Output int           // tokens
}

// met reports whether the answer kept the SLO.
func (o *Outcome) met(s SLO) bool {
	return o.Err == nil && o.TTFT <= s.TTFT && o.ITL <= s.ITL
}

// Score sums up outcomes. Shares and rates count failed requests as requests that missed; times are
// of complete answers, and NaN without any.
type Score struct {
	Requests, OK              int
	TTFTP50, TTFTP90, TTFTP99 float64 // seconds
	ITLP50, ITLP90            float64 // seconds
	TTFTMean                  float64 // seconds
	E2EMean                   float64 // seconds
	Goodput                   float64 // requests per second that kept the SLO
	Attainment                float64 // share of requests that kept it
	HitRatio                  float64 // share of the prompt tokens served from caches
	TokensPerSecond           float64 // of answers
}

// Sum sums up the outcomes of d of traffic.
func Sum(outcomes []Outcome, slo SLO, d time.Duration) Score {
	s := Score{Requests: len(outcomes)}
	var ttft, itl []float64
	var met, prompt, cached, output int
	var e2e float64
	for i := range outcomes {
		o := &outcomes[i]
		if o.Err != nil {
			continue
		}
		s.OK++
		ttft = append(ttft, o.TTFT.Seconds())
		if o.Output > 1 {
			itl = append(itl, o.ITL.Seconds())
		}
		if o.met(slo) {
			met++
		}
		prompt, cached, output = prompt+o.Prompt, cached+o.Cached, output+o.Output
		e2e += o.E2E.Seconds()
	}
	q := stat.Quantiles(ttft, .5, .9, .99)
	s.TTFTP50, s.TTFTP90, s.TTFTP99 = q[0], q[1], q[2]
	g := stat.Quantiles(itl, .5, .9)
	s.ITLP50, s.ITLP90 = g[0], g[1]
	s.TTFTMean = stat.Mean(ttft)
	s.E2EMean = ratio(e2e, float64(s.OK))
	s.Attainment = ratio(float64(met), float64(len(outcomes)))
	s.HitRatio = ratio(float64(cached), float64(prompt))
	if d > 0 {
		s.Goodput, s.TokensPerSecond = float64(met)/d.Seconds(), float64(output)/d.Seconds()
	}
	return s
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// Failures are the first few different errors of the outcomes.
func Failures(outcomes []Outcome) []error {
	const few = 3
	var out []error
	seen := map[string]int{}
	for i := range outcomes {
		if err := outcomes[i].Err; err != nil {
			if seen[err.Error()]++; seen[err.Error()] == 1 && len(out) < few {
				out = append(out, err)
			}
		}
	}
	for i, err := range out {
		if n := seen[err.Error()]; n > 1 {
			out[i] = fmt.Errorf("%w (%d times)", err, n)
		}
	}
	return out
}
