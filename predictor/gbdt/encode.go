package gbdt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json"
)

// The written form of a Model is one JSON object, data alone:
//
//	{"format": "presage-gbdt", "version": 1, "dim": 2, "base": 0.5,
//	 "trees": [{"feature": [1], "cut": [0.25], "missing": [true], "leaves": [-1, 1]}],
//	 "sum": "3f0c..."}
//
// Arrays of a tree hold a value for each level, leaves 2^levels in the order of [Model]'s leaves: bit
// k is the outcome of level k. Numbers are the shortest that read back as the same float32 (base:
// float64). sum is the 64-bit xxHash of the values, in this order, little-endian, so that it
// outlives re-indentation.
const (
	format        = "presage-gbdt"
	formatVersion = 1
)

type written struct {
	Format  string        `json:"format"`
	Version int           `json:"version"`
	Dim     int           `json:"dim"`
	Base    float64       `json:"base"`
	Trees   []writtenTree `json:"trees"`
	Sum     string        `json:"sum"`
}

type writtenTree struct {
	Feature []int     `json:"feature"`
	Cut     []float32 `json:"cut"`
	Missing []bool    `json:"missing"` // missing values go right
	Leaves  []float32 `json:"leaves"`
}

// sum hashes all values.
func (w *written) sum() string {
	var b []byte
	u64 := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	u32 := func(v float32) { b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v)) }
	u64(uint64(w.Version))
	u64(uint64(w.Dim))
	u64(math.Float64bits(w.Base))
	u64(uint64(len(w.Trees)))
	for i := range w.Trees {
		t := &w.Trees[i]
		u64(uint64(len(t.Feature)))
		for k, f := range t.Feature {
			u64(uint64(f))
			u32(t.Cut[k])
			if t.Missing[k] {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
		for _, v := range t.Leaves {
			u32(v)
		}
	}
	return fmt.Sprintf("%016x", xxhash.Sum64(b))
}

// MarshalJSON writes the model; [Model.UnmarshalJSON] and [Read] read it.
func (m *Model) MarshalJSON() ([]byte, error) {
	w := written{Format: format, Version: formatVersion, Dim: m.dim, Base: m.base, Trees: make([]writtenTree, len(m.trees))}
	for i, t := range m.trees {
		out := writtenTree{Leaves: t.leaves}
		for _, l := range t.levels {
			out.Feature = append(out.Feature, l.feature)
			out.Cut = append(out.Cut, l.cut)
			out.Missing = append(out.Missing, l.missing)
		}
		w.Trees[i] = out
	}
	w.Sum = w.sum()
	return json.Marshal(&w)
}

// UnmarshalJSON reads what [Model.MarshalJSON] wrote. Unknown and repeated keys, values that no
// training makes, and a wrong checksum are errors, which name the place; m is unchanged then.
func (m *Model) UnmarshalJSON(data []byte) error {
	if len(data) > maxBytes {
		return fmt.Errorf("the model is larger than %d bytes", maxBytes)
	}
	var w written
	if err := json.Unmarshal(data, &w, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("cannot parse the model: %w", err)
	}
	switch {
	case w.Format != format:
		return fmt.Errorf("format: %q: not %q", clip(w.Format), format)
	case w.Version != formatVersion:
		return fmt.Errorf("version: %d: not %d", w.Version, formatVersion)
	case w.Dim < 1 || w.Dim > maxDim:
		return fmt.Errorf("dim: %d: not in 1..%d", w.Dim, maxDim)
	case !(math.Abs(w.Base) <= maxValue):
		return fmt.Errorf("base: %v: not within %v of zero", w.Base, maxValue)
	case len(w.Trees) > maxTrees:
		return fmt.Errorf("trees: %d: more than %d", len(w.Trees), maxTrees)
	}
	out := Model{dim: w.Dim, base: w.Base}
	for i := range w.Trees {
		t, err := w.Trees[i].tree(w.Dim)
		if err != nil {
			return fmt.Errorf("trees[%d].%w", i, err)
		}
		out.trees = append(out.trees, t)
	}
	if sum := w.sum(); sum != w.Sum {
		return fmt.Errorf("sum: %q: the values have %q: the model was changed or damaged", clip(w.Sum), sum)
	}
	*m = out
	return nil
}

func (w *writtenTree) tree(dim int) (tree, error) {
	depth := len(w.Feature)
	switch {
	case depth < 1 || depth > maxDepth:
		return tree{}, fmt.Errorf("feature: %d levels: not in 1..%d", depth, maxDepth)
	case len(w.Cut) != depth:
		return tree{}, fmt.Errorf("cut: %d values for %d levels", len(w.Cut), depth)
	case len(w.Missing) != depth:
		return tree{}, fmt.Errorf("missing: %d values for %d levels", len(w.Missing), depth)
	case len(w.Leaves) != 1<<depth:
		return tree{}, fmt.Errorf("leaves: %d values for %d levels, not %d", len(w.Leaves), depth, 1<<depth)
	}
	t := tree{leaves: w.Leaves}
	for k, f := range w.Feature {
		if f < 0 || f >= dim {
			return tree{}, fmt.Errorf("feature[%d]: %d: not in 0..%d", k, f, dim-1)
		}
		t.levels = append(t.levels, level{feature: f, cut: w.Cut[k], missing: w.Missing[k], key: int64(order(w.Cut[k]))})
	}
	for k, v := range w.Leaves {
		if !(math.Abs(float64(v)) <= maxValue) {
			return tree{}, fmt.Errorf("leaves[%d]: %v: not within %v of zero", k, v, maxValue)
		}
	}
	return t, nil
}

// Read reads a model of at most 32 MiB that [Model.MarshalJSON] wrote.
func Read(r io.Reader) (*Model, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, errors.New("the file is empty")
	}
	m := new(Model)
	if err := m.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	return m, nil
}
