package scrape

import (
	"math"

	"github.com/presage-router/presage/features/fleet"
)

// Report says what was wrong with a page that could be used.
type Report struct {
	Missing  fleet.Known // gauges the page did not have
	Rejected fleet.Known // fields left out because a value was refused or a rank was missing
	Refused  int         // values refused: NaN, infinite, out of range, unreadable
}

// Load ends the page and fills dst with what it said: At, Held and the like are left alone. old is
// an earlier load of the same engine whose lists of adapters may be shared, or empty. An error means
// that the page is unusable and dst undefined.
func (s *Scanner) Load(dst, old *fleet.Load) (Report, error) {
	var r Report
	if s.dialect == nil || len(s.rows) == 0 && s.spoiled == 0 && !s.lora.seen {
		return r, errNoSeries // JSON or HTML, perhaps
	}
	if len(s.carry) > 0 || s.open && !s.ended {
		return r, errCut
	}
	*dst = fleet.Load{}
	if err := s.selectModel(); err != nil {
		return r, err
	}
	r.Refused = s.refused
	s.gauges(dst, &r)
	s.counters(dst, &r)
	s.capacity(dst, &r)
	if s.lora.seen && (s.spoiled&(1<<loraInfo) != 0 || !s.lora.load(dst, old)) {
		r.Rejected |= fleet.KnowLoRA
	}
	core := fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV
	r.Missing = core &^ (dst.Known | r.Rejected)
	return r, nil
}

// selectModel keeps the rows that speak of the endpoint's model. Series without a model label
// belong to every model. Where none has the model's name, a page of a single model is taken to
// speak of it, whatever it is called there.
func (s *Scanner) selectModel() error {
	var found bool
	var only modelKey
	several := false
	for i := range s.rows {
		switch k := s.rows[i].model; {
		case k.kind == unlabelled:
		case k.kind == wanted:
			found = true
		case only.kind == unlabelled:
			only = k
		case only != k:
			several = true
		}
	}
	if found {
		only = modelKey{kind: wanted}
	} else if several {
		if s.model == "" {
			return nil // the endpoint answers for any model: all of its work counts
		}
		return errModels
	}
	kept := s.rows[:0]
	for i := range s.rows {
		if k := s.rows[i].model; k.kind == unlabelled || k == only {
			kept = append(kept, s.rows[i])
		}
	}
	s.rows = kept
	return nil
}

// folded is one metric over the rows of a page.
type folded struct {
	n        int // rows that have it; 0: absent
	sum      float64
	low, top float64
	rejected bool
}

// fold adds up one metric. Labelled rows win over unlabelled ones. It is rejected as a whole when a
// value of it was refused, or when an engine that has its gauges lacks it: the sum over the other
// engines would be a plausible wrong number.
func (s *Scanner) fold(m metric) (f folded) {
	bit := uint32(1) << m
	labelled := false
	for i := range s.rows {
		r := &s.rows[i]
		labelled = labelled || r.model.kind != unlabelled && (r.has|r.bad)&bit != 0
	}
	for i := range s.rows {
		r := &s.rows[i]
		if labelled && r.model.kind == unlabelled {
			continue
		}
		if r.bad&bit != 0 {
			f.rejected = true
		}
		if r.has&bit == 0 {
			continue
		}
		if f.n++; f.n == 1 {
			f.low = r.v[m]
		}
		f.sum += r.v[m]
		f.low, f.top = min(f.low, r.v[m]), max(f.top, r.v[m])
	}
	f.rejected = f.rejected || s.spoiled&bit != 0
	for _, g := range [...]metric{waiting, running, kvUsage, kvUsageOld} {
		f.rejected = f.rejected || f.n > 0 && s.lacks(m, g)
	}
	return f
}

// lacks reports whether all rows with m have g too, but some row with g has no m.
func (s *Scanner) lacks(m, g metric) bool {
	more := false
	for i := range s.rows {
		hasM, hasG := s.rows[i].has>>m&1, s.rows[i].has>>g&1
		if hasM > hasG {
			return false
		}
		more = more || hasG > hasM
	}
	return more
}

// either folds the metric, or its older name where it is absent.
func (s *Scanner) either(m, older metric) folded {
	f := s.fold(m)
	if f.n == 0 && !f.rejected {
		f = s.fold(older)
	}
	return f
}

// know marks a field as known, or as rejected.
func know(dst *fleet.Load, r *Report, k fleet.Known, fs ...folded) bool {
	for _, f := range fs {
		if f.rejected {
			r.Rejected |= k
			return false
		}
	}
	for _, f := range fs {
		if f.n == 0 {
			return false
		}
	}
	dst.Known |= k
	return true
}

func (s *Scanner) gauges(dst *fleet.Load, r *Report) {
	if f := s.fold(waiting); know(dst, r, fleet.KnowWaiting, f) {
		dst.Waiting = int32(f.sum)
	}
	if f := s.fold(running); know(dst, r, fleet.KnowRunning, f) {
		dst.Running = int32(f.sum)
	}
	if f := s.either(kvUsage, kvUsageOld); know(dst, r, fleet.KnowKV, f) {
		dst.KVUsage, dst.KVMax = float32(f.sum/float64(f.n)), float32(f.top)
	}
}

func (s *Scanner) counters(dst *fleet.Load, r *Report) {
	p := s.fold(prompt)
	q := p
	if !s.dialect.queriesArePrompt {
		q = s.either(queries, queriesOld)
	}
	if h := s.either(hits, hitsOld); know(dst, r, fleet.KnowPrefix, q, h) {
		dst.Queries, dst.Hits = q.sum, h.sum
	}
	if g := s.fold(generated); know(dst, r, fleet.KnowTokens, p, g) {
		dst.Prompt, dst.Generated = p.sum, g.sum
	}
	if f := s.fold(preemptions); know(dst, r, fleet.KnowPreemptions, f) {
		dst.Preemptions = f.sum
	}
}

// capacity folds block size and count; engines behind one address must agree on the size.
func (s *Scanner) capacity(dst *fleet.Load, r *Report) {
	size, count := s.fold(blockSize), s.fold(blocks)
	size.rejected = size.rejected || size.low != size.top || s.spoiled&(1<<cacheInfo) != 0
	// One engine's blocks must not pass for those of all.
	if engines := s.either(kvUsage, kvUsageOld).n; count.n > 0 && count.n < engines || count.sum > math.MaxInt32 {
		count.rejected = true
	}
	if know(dst, r, fleet.KnowBlocks, size, count) {
		dst.BlockSize, dst.Blocks = int32(size.top), int32(count.sum)
	}
}
