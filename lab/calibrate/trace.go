package calibrate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/presage-router/presage/datasets"
)

// NewTrace returns the answered requests of rows, which one engine served, in order of arrival.
// Requests of one prefix group share their first blocks. Rows without arrival, prompt or output are
// an error that names the line.
func NewTrace(rows []datasets.Row, limits Limits) (Trace, error) {
	t := Trace{Limits: limits}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b datasets.Row) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Outcome != datasets.Completed || r.Output == 0:
			continue
		case !datasets.Known(r.Arrival) || r.Arrival < 0 || r.Arrival > longest:
			return t, fmt.Errorf("line %d: arrival: missing or impossible; requests without it cannot be simulated", r.Line)
		case r.Prompt < 1 || r.Prompt > largest:
			return t, fmt.Errorf("line %d: prompt tokens: missing or impossible; requests without them cannot be simulated", r.Line)
		case r.Output < 0 || r.Output > largest:
			return t, fmt.Errorf("line %d: output tokens: missing or impossible; requests without them cannot be simulated", r.Line)
		}
		q := Request{At: time.Duration(r.Arrival * 1e9), Prompt: r.Prompt, Output: r.Output}
		if r.GroupTokens > 0 {
			q.Blocks = groupBlocks(r.Group, min(r.GroupTokens, r.Prompt))
		}
		t.Requests = append(t.Requests, q)
		t.Measured = append(t.Measured, Latency{Queue: r.Queue, TTFT: r.TTFT, ITL: r.ITL, E2E: r.E2E})
	}
	return t, nil
}

// Bounds of what is taken for a request.
const (
	largest = 1 << 24 // tokens
	longest = 1e8     // seconds since the run began
)

// groupBlocks is the chain of the tokens that a prefix group shares. What follows them is shared by
// nobody, so the chain ends there.
func groupBlocks(group, tokens int) []uint64 {
	blocks := make([]uint64, tokens/16)
	for i := range blocks {
		blocks[i] = mix(uint64(group+1)<<32 + uint64(i))
	}
	return blocks
}

// mix spreads the bits of v: the finalizer of splitmix64.
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// byRun groups records by their run, in order of first appearance.
func byRun[T any](records []T, run func(*T) string) (names []string, runs map[string][]T) {
	runs = map[string][]T{}
	for i := range records {
		name := run(&records[i])
		if _, ok := runs[name]; !ok {
			names = append(names, name)
		}
		runs[name] = append(runs[name], records[i])
	}
	return names, runs
}
