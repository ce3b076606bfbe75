package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/predictor"
)

// Manifest says what a model is and what it was made of.
type Manifest struct {
	Name    string            `json:"name"`
	Schema  features.SchemaID `json:"schema"`
	Created time.Time         `json:"created"`
	Data    string            `json:"data"`  // hash of the records it learned from; empty: it learned while serving
	Rows    int               `json:"rows"`  // records it learned from
	Since   time.Time         `json:"since"` // the first of them
	Until   time.Time         `json:"until"` // the last of them
	Classes int               `json:"classes"`
	From    string            `json:"from,omitempty"`    // champion that it learned on from, while serving; empty: none
	Metrics json.RawMessage   `json:"metrics,omitempty"` // what its training measured, an object
}

const (
	magic       = "presage-model"
	fileVersion = 1
	maxManifest = 1 << 20
	maxFile     = predictor.MaxStateBytes + maxManifest + 1<<10
)

// seal puts a file together.
func seal(m *Manifest, model []byte) ([]byte, error) {
	head, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot write the manifest: %w", err)
	}
	if len(head) > maxManifest {
		return nil, fmt.Errorf("the manifest takes %d bytes, more than %d", len(head), maxManifest)
	}
	rest := make([]byte, 0, len(head)+1+len(model)+1)
	rest = append(append(append(append(rest, head...), '\n'), model...), '\n')
	sum := sha256.Sum256(rest)
	first := fmt.Sprintf("%s %d %s\n", magic, fileVersion, hex.EncodeToString(sum[:]))
	return append([]byte(first), rest...), nil
}

// Reasons for which a file is refused, for those who count or branch.
var (
	// ErrDamaged means that the file is not what was written.
	ErrDamaged = errors.New("damaged")
	// ErrForeign means that the file is no model.
	ErrForeign = errors.New("not a model file")
	// ErrSchema means that the model is of another version or schema than this program.
	ErrSchema = errors.New("made by another version")
)

// unseal takes a file apart after checking it.
func unseal(file []byte) (*Manifest, []byte, error) {
	first, rest, ok := bytes.Cut(file, []byte("\n"))
	fields := bytes.Fields(first[:min(len(first), 200)])
	if len(file) == 0 {
		return nil, nil, fmt.Errorf("empty: %w", ErrDamaged)
	}
	if len(fields) == 0 || string(fields[0]) != magic {
		return nil, nil, fmt.Errorf("does not begin with %q: %w", magic, ErrForeign)
	}
	if !ok || len(fields) != 3 {
		return nil, nil, fmt.Errorf("cut within the first line: %w", ErrDamaged)
	}
	if string(fields[1]) != fmt.Sprint(fileVersion) {
		return nil, nil, fmt.Errorf("file version %s, this program reads %d: %w", fields[1], fileVersion, ErrSchema)
	}
	sum := sha256.Sum256(rest)
	if got := hex.EncodeToString(sum[:]); got != string(fields[2]) {
		return nil, nil, fmt.Errorf("checksum %.12s of %d bytes, written with %.12s: cut or changed: %w", got, len(file), fields[2], ErrDamaged)
	}
	head, model, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(head) > maxManifest {
		return nil, nil, fmt.Errorf("no manifest: %w", ErrDamaged)
	}
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	m := new(Manifest)
	if err := d.Decode(m); err != nil {
		return nil, nil, fmt.Errorf("manifest: %w: %w", err, ErrDamaged)
	}
	return m, bytes.TrimSuffix(model, []byte("\n")), nil
}
