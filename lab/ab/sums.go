package ab

import (
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/router/experiment"
)

// tally counts what became of requests.
type tally struct {
	ended, failed int // as judged: clients that left before they had to wait too long are left out
	slo, met      int // of these, those that carried an SLO, and met it
	tokens        int // requests that got a first token
	ttft          float64
}

func (t *tally) add(r *experiment.Result) {
	t.ended++
	if r.Failed {
		t.failed++
	}
	if r.SLO {
		t.slo++
		if r.Met {
			t.met++
		}
	}
	if r.TTFT > 0 {
		t.tokens++
		t.ttft += r.TTFT.Seconds()
	}
}

// sums are the requests of one arm within a cell, or of all.
type sums struct {
	tally
	arrived      int // all requests, judged or not
	ttfts        sample
	gaps         int // answers with an ITL
	itl          float64
	prompt       float64
	reported     float64 // prompt tokens of answers that told how many were cached
	cached       float64
	halves       [2]tally // of the block
	foldA, foldB tally    // of the control: halves by hash of the unit
}

func (s *sums) add(o *features.Observation) (r experiment.Result, ok bool) {
	s.arrived++
	s.prompt += float64(max(0, o.PromptTokens))
	if o.CachedTokens >= 0 && o.PromptTokens >= o.CachedTokens {
		s.reported += float64(o.PromptTokens)
		s.cached += float64(o.CachedTokens)
	}
	if r, ok = experiment.ResultOf(o); !ok {
		return r, false
	}
	s.tally.add(&r)
	if o.TTFT > 0 {
		s.ttfts.add(o.TTFT.Seconds())
	}
	if o.ITL > 0 {
		s.gaps++
		s.itl += o.ITL.Seconds()
	}
	return r, true
}

// merge adds a cell's sums to those of a whole arm; halves, folds and single times stay with their cells.
func (s *sums) merge(o *sums) {
	s.ended, s.failed, s.slo, s.met = s.ended+o.ended, s.failed+o.failed, s.slo+o.slo, s.met+o.met
	s.tokens, s.ttft = s.tokens+o.tokens, s.ttft+o.ttft
	s.arrived, s.gaps, s.itl = s.arrived+o.arrived, s.gaps+o.gaps, s.itl+o.itl
	s.prompt, s.reported, s.cached = s.prompt+o.prompt, s.reported+o.reported, s.cached+o.cached
}

const mostTimes = 1024 // of a cell

// sample keeps every so manieth of a stream of values.
type sample struct {
	values []float32
	stride int
	seen   int
}

func (s *sample) add(v float64) {
	s.stride = max(s.stride, 1)
	if s.seen%s.stride == 0 && len(s.values) == mostTimes { // every other, from here on too
		for i := range mostTimes / 2 {
			s.values[i] = s.values[2*i]
		}
		s.values = s.values[:mostTimes/2]
		s.stride *= 2
	}
	if s.seen%s.stride == 0 {
		s.values = append(s.values, float32(v))
	}
	s.seen++
}

func (s *sample) quantile(q float64) float64 {
	x := make([]float64, len(s.values))
	for i, v := range s.values {
		x[i] = float64(v)
	}
	return stat.Quantiles(x, q)[0]
}
