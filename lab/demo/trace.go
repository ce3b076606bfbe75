package demo

import (
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/lab/load"
)

// Limits of replayed requests: what the emulated engines take.
const (
	maxPrompt = 400_000
	maxOutput = 32_000
)

// Replay makes a workload of the first window of a trace: arrivals and lengths as in the file, text
// made up. Prompts share text where the file says which blocks they share. The error says which
// part of the input is of no use.
func Replay(path string, window time.Duration) (*Workload, error) {
	t, err := datasets.LoadTrace(path)
	if err != nil {
		return nil, err
	}
	w := &Workload{Workload: load.Workload{
		About: filepath.Base(path), Duration: window,
		SLO: load.SLO{TTFT: 2 * time.Second, ITL: 50 * time.Millisecond},
	}}
	for i := range t.Rows {
		row := &t.Rows[i]
		at := time.Duration(row.Arrival * float64(time.Second))
		switch {
		case row.Run != t.Rows[0].Run:
			continue // runs of one file overlap; the first stands for itself
		case !datasets.Known(row.Arrival):
			return nil, fmt.Errorf("%s:%d: no arrival times; give a trace that has them", path, row.Line)
		case at >= window || row.Prompt < 1 || row.Output < 1:
			continue
		case row.Prompt > maxPrompt || row.Output > maxOutput:
			return nil, fmt.Errorf("%s:%d: %d prompt and %d output tokens are more than the emulated engines take (%d, %d); shorten the window",
				path, row.Line, row.Prompt, row.Output, maxPrompt, maxOutput)
		}
		w.Jobs = append(w.Jobs, load.Job{At: at, Parts: parts(row, i), Output: row.Output})
	}
	if len(w.Jobs) == 0 {
		return nil, fmt.Errorf("%s: no request in the first %v that has a prompt and an answer; give a longer --window or another trace", path, window)
	}
	return w, nil
}

// parts is the prompt of a row: its blocks, cut to its length, then text of its own.
func parts(row *datasets.Row, i int) []load.Part {
	var out []load.Part
	left := row.Prompt
	for _, id := range row.Blocks {
		n := min(left, row.BlockTokens)
		if n < 1 {
			break
		}
		out = append(out, load.Part{Seed: id ^ 0x6d6f6f6e, Tokens: n})
		left -= n
	}
	if left > 0 {
		out = append(out, load.Part{Seed: math.MaxUint64 - uint64(i), Tokens: left})
	}
	return out
}
