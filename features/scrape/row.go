package scrape

import (
	"bytes"
	"hash/maphash"
	"strconv"
)

// row is what one engine of the page said: the series of one model, rank and kind of request.
type row struct {
	model modelKey
	rank  uint64
	has   uint32 // bits of metrics with a value
	bad   uint32 // bits of metrics with a refused value
	v     [numMetrics]float64
}

// modelKey is the model a series speaks of.
type modelKey struct {
	kind modelKind
	hash uint64 // of the name, for kind other
}

type modelKind uint8

const (
	unlabelled modelKind = iota
	undefined            // the engine does not know its model's name
	wanted               // the endpoint's model
	other
)

// details are label values that carry facts themselves; nil where the label is absent.
type details struct {
	blockSize, blocks, maxLoRA, running, waiting []byte
}

// place is the row a series belongs to.
type place struct {
	model modelKey
	rank  uint64
}

// read consumes the label set at the start of b. It says where the series belongs, and whether it
// is only a part beside the whole.
func (s *Scanner) read(b *[]byte, info *details) (at place, skip bool, err error) {
	s.labels.scratch = s.labels.scratch[:0]
	if !s.labels.open(*b) {
		*b = s.labels.rest
		return at, false, nil
	}
	for {
		name, value, err := s.labels.next()
		if err != nil {
			return at, false, err
		}
		if name == nil {
			*b = s.labels.rest
			return at, skip, nil
		}
		if value == nil {
			return at, false, errLine // a metric name where another has been given
		}
		if len(value) == 0 && !bytes.HasSuffix(name, []byte("_lora_adapters")) {
			continue // an empty label is an absent one
		}
		switch s.dialect.label(name) {
		case noRole:
		case modelOf:
			at.model = s.modelKey(value)
		case summed:
			h := maphash.Bytes(s.seed, name)
			at.rank += h ^ (maphash.Bytes(s.seed, value)*31 + h>>7) // a sum: labels come in any order
		case priority:
			skip = true
		case blockSizeOf:
			info.blockSize = value
		case blocksOf:
			info.blocks = value
		case maxLoRA:
			info.maxLoRA = value
		case runningLoRA:
			info.running = value
		case waitingLoRA:
			info.waiting = value
		}
	}
}

func (s *Scanner) modelKey(name []byte) modelKey {
	switch string(name) {
	case s.model:
		return modelKey{kind: wanted}
	case "undefined":
		return modelKey{kind: undefined}
	}
	return modelKey{kind: other, hash: maphash.Bytes(s.seed, name)}
}

// row finds or adds the row of a place.
func (s *Scanner) row(at place) (*row, error) {
	for i := range s.rows {
		if r := &s.rows[i]; r.rank == at.rank && r.model == at.model {
			return r, nil
		}
	}
	if len(s.rows) == maxRows {
		return nil, errManyRows
	}
	s.rows = append(s.rows, row{model: at.model, rank: at.rank})
	return &s.rows[len(s.rows)-1], nil
}

// set stores a value. Replicas of one series (the ranks of one tensor-parallel group) say the same;
// where they differ, the greatest counts, whatever the order of lines.
func (s *Scanner) set(r *row, m metric, v float64) {
	v, ok := plausible(m, v)
	if !ok {
		r.bad |= 1 << m
		s.refused++
		return
	}
	if r.has&(1<<m) == 0 || v > r.v[m] {
		r.v[m] = v
	}
	r.has |= 1 << m
}

// text stores a number that an engine wrote as a label; "None" is how it says that it does not know.
func (s *Scanner) text(r *row, m metric, label []byte) {
	if len(label) == 0 || string(label) == "None" {
		return
	}
	n, err := strconv.ParseUint(string(label), 10, 32)
	if err != nil {
		r.bad |= 1 << m
		s.refused++
		return
	}
	s.set(r, m, float64(n))
}
