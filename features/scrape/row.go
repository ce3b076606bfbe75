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

// series is one line of a wanted metric: where it belongs, and the labels that carry facts
// themselves, nil where absent.
type series struct {
	model modelKey
	rank  uint64 // of the labels that tell ranks and kinds of requests apart
	part  bool   // only a part of what another series says as a whole
	value float64

	blockSize, blocks, maxLoRA, running, waiting []byte
}

// parse reads labels and value of a series; false if they break the text format.
func (s *Scanner) parse(b []byte, x *series) bool {
	b = bytes.TrimSuffix(b, []byte{'\r'})
	s.labels.scratch = s.labels.scratch[:0]
	for has := s.labels.open(b); has; {
		name, value, err := s.labels.next()
		if err != nil || name != nil && value == nil { // a second metric name
			return false
		}
		if has = name != nil; has && len(value) > 0 { // an empty label is an absent one
			s.label(name, value, x)
		}
	}
	var err error
	x.value, err = sampleValue(s.labels.rest)
	return err == nil
}

func (s *Scanner) label(name, value []byte, x *series) {
	switch s.dialect.label(name) {
	case noRole:
	case modelOf:
		x.model = s.modelKey(value)
	case summed:
		h := maphash.Bytes(s.seed, name)
		x.rank += h ^ (maphash.Bytes(s.seed, value)*31 + h>>7) // a sum: labels come in any order
	case priority:
		x.part = true
	case blockSizeOf:
		x.blockSize = value
	case blocksOf:
		x.blocks = value
	case maxLoRA:
		x.maxLoRA = value
	case runningLoRA:
		x.running = value
	case waitingLoRA:
		x.waiting = value
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

// row finds or adds the row of a model and rank.
func (s *Scanner) row(model modelKey, rank uint64) (*row, error) {
	for i := range s.rows {
		if r := &s.rows[i]; r.rank == rank && r.model == model {
			return r, nil
		}
	}
	if len(s.rows) == maxRows {
		return nil, errManyRows
	}
	s.rows = append(s.rows, row{model: model, rank: rank})
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
