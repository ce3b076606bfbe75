package record

import (
	"bytes"
	"errors"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

func finished() *features.Observation {
	o := &features.Observation{
		ID: "d-1", At: time.Date(2026, 5, 1, 12, 0, 0, 1, time.UTC), Model: "m", Stream: true, Schema: features.Schema(),
		Endpoint: "e1", Picked: "e1", Policy: "predictive", Propensity: 0.5, Cause: fleet.Complete, Status: 200,
		Where:        features.Where{Class: unique.Make(fleet.Class{Model: "m", GPU: "H100", TP: 2}), Slot: 3, Instance: 9},
		PromptTokens: 40, CachedTokens: features.Unknown, OutputTokens: 2, TTFT: 80 * time.Millisecond, E2E: time.Second,
		Said: features.Nothing(),
	}
	o.X[features.Prompt] = 40
	return o
}

// TestLines: what was written as a line is read back.
func TestLines(t *testing.T) {
	want := finished()
	line, err := Append([]byte("before\n"), want)
	if err != nil {
		t.Fatal(err)
	}
	line, ok := bytes.CutPrefix(line, []byte("before\n"))
	if !ok || bytes.IndexByte(line, '\n') != len(line)-1 {
		t.Fatalf("%q is no line", line)
	}
	r, err := Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	var got features.Observation
	if err := r.Observation(&got); err != nil {
		t.Fatal(err)
	}
	if again, err := Append(nil, &got); err != nil || !bytes.Equal(again, line) {
		t.Error(cmp.Diff(string(line), string(again)), err)
	}
	r.Schema = "v0-12345678"
	if err := r.Observation(&got); !errors.Is(err, ErrSchema) {
		t.Errorf("another schema: %v", err)
	}
}

// FuzzParse: no line breaks the reader, and what it accepts is written back the same.
func FuzzParse(f *testing.F) {
	line, err := Append(nil, finished())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(line), "{}", `{"x":[null]}`, `{"id":1}`, `{"x":[1e99]}`, ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := Parse(line)
		if err != nil {
			return
		}
		var o, again features.Observation
		if r.Observation(&o) != nil {
			return
		}
		text, err := Append(nil, &o)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = Parse(text); err == nil {
			err = r.Observation(&again)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	})
}
