package main

import (
	"context"
	"fmt"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/calibrate"
)

type calibrateCommand struct {
	File string `arg:"" help:"Measurements: measured.csv, vllm-cpu CSV, or passes of vLLM (vllm-fpm)."`

	Only string `name:"run" placeholder:"NAME" help:"Run of the file, where it holds several." group:"File"`

	GPU   string `placeholder:"GPU" help:"GPU type to name in the result." group:"Engine"`
	Model string `placeholder:"NAME" help:"Model to name in the result." group:"Engine"`

	MaxSeqs    []int `name:"max-num-seqs" placeholder:"N,..." help:"Requests in a batch, of each endpoint or one for all (256)." group:"Engine"`
	MaxBatched []int `name:"max-num-batched-tokens" placeholder:"N,..." help:"Tokens in a batch, likewise; default: 64, 512, 2048 and 8192 are tried." group:"Engine"`
	Blocks     int   `name:"kv-blocks" placeholder:"N" help:"KV blocks of 16 tokens; default: as many as are needed." group:"Engine"`

	JSON bool `name:"json" help:"Print one JSON object on the last line." group:"Output"`
}

// Run fits an engine and says how well it foretells what it has not seen.
func (c *calibrateCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	limits, err := c.limits()
	if err != nil {
		return command.Usage(err)
	}
	r, err := calibrate.Calibrate(ctx, c.File, calibrate.Setup{Run: c.Only, GPU: c.GPU, Model: c.Model, Limits: limits})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return command.Usage(err)
	}
	e := &r.Engine
	t.Result("engine %s: %d knots, %.3f ms a step of one token", e.String(), len(e.Knots), e.G[0]/1e3)
	t.Result("  prefill %.2f us/token beyond %.0f tokens, decode %.2f us/request and %.2f ns/token of context", e.Slope(), e.Knots[len(e.Knots)-2], e.DecodeSeq, e.DecodeKV*1e3)
	t.Result("fitted on %d rows, judged by %d others", r.Errors.Fitted, r.Errors.Held)
	for _, m := range []struct {
		name string
		v    *float64
	}{{"step time", r.Errors.Step}, {"TTFT", r.Errors.TTFT}, {"ITL", r.Errors.ITL}} {
		if m.v != nil {
			t.Result("  median error of %s: %s", m.name, share(*m.v))
		}
	}
	for _, w := range r.Errors.Windows {
		t.Result("  from %.0f s, %d requests: TTFT p50 %+.1f %% p90 %+.1f %%, ITL p50 %+.1f %% p90 %+.1f %%",
			w.From, w.Requests, 100*w.TTFT50, 100*w.TTFT90, 100*w.ITL50, 100*w.ITL90)
	}
	if c.JSON {
		return t.JSON(r)
	}
	return nil
}

// limits puts the flags together.
func (c *calibrateCommand) limits() ([]calibrate.Limits, error) {
	n := max(len(c.MaxSeqs), len(c.MaxBatched), min(1, c.Blocks))
	for _, f := range []struct {
		name   string
		values []int
	}{{"max-num-seqs", c.MaxSeqs}, {"max-num-batched-tokens", c.MaxBatched}} {
		if len(f.values) > 1 && len(f.values) != n {
			return nil, fmt.Errorf("--%s: %d values, %d of the other flag; write one for all endpoints or one for each", f.name, len(f.values), n)
		}
		for _, v := range f.values {
			if v < 1 || v > 1<<16 {
				return nil, fmt.Errorf("--%s %d: not from 1 to 65536", f.name, v)
			}
		}
	}
	if c.Blocks < 0 || c.Blocks == 1 || c.Blocks > 1<<24 {
		return nil, fmt.Errorf("--kv-blocks %d: not from 2 to %d", c.Blocks, 1<<24)
	}
	at := func(values []int, i int) int {
		if len(values) == 0 {
			return 0
		}
		return values[min(i, len(values)-1)]
	}
	limits := make([]calibrate.Limits, n)
	for i := range limits {
		limits[i] = calibrate.Limits{MaxSeqs: at(c.MaxSeqs, i), MaxBatched: at(c.MaxBatched, i), Blocks: c.Blocks}
	}
	return limits, nil
}
