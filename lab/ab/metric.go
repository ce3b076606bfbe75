package ab

import "math"

const (
	fewest    = 10  // requests of an arm in a cell, for the cell to count
	fewestP99 = 100 // for a p99 of a cell
)

// metric is a figure of one arm's requests within a cell.
type metric struct {
	name string
	unit string // points are percentage points
	of   func(*sums) float64
}

// metrics, the primary one first. Prompt tokens are no result: they show whether the arms met the same
// kind of traffic.
var metrics = []metric{
	{"slo_attainment", "points", func(s *sums) float64 { return attained(&s.tally) }},
	{"ttft_mean", "ms", func(s *sums) float64 { return firstToken(&s.tally) }},
	{"ttft_p90", "ms", func(s *sums) float64 { return quantile(s, 0.9, fewest) }},
	{"ttft_p99", "ms", func(s *sums) float64 { return quantile(s, 0.99, fewestP99) }},
	{"itl_mean", "ms", func(s *sums) float64 { return ratio(1e3*s.itl, float64(s.gaps)) }},
	{"errors", "points", func(s *sums) float64 { return ratio(100*float64(s.failed), float64(s.ended)) }},
	{"prompt_tokens", "tokens", func(s *sums) float64 { return ratio(s.prompt, float64(s.arrived)) }},
}

// attained is the share of requests with an SLO that met it, in percent.
func attained(t *tally) float64 { return ratio(100*float64(t.met), float64(t.slo)) }

// firstToken is the mean TTFT in ms.
func firstToken(t *tally) float64 { return ratio(1e3*t.ttft, float64(t.tokens)) }

func quantile(s *sums, q float64, least int) float64 {
	if s.tokens < least {
		return math.NaN()
	}
	return 1e3 * s.ttfts.quantile(q)
}

// ratio is NaN where there are too few to divide by.
func ratio(sum, n float64) float64 {
	if n < fewest {
		return math.NaN()
	}
	return sum / n
}
