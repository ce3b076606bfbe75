package calibrate

import (
	"context"
	"fmt"
	"math"

	"github.com/presage-router/presage/datasets"
)

// servingsim replays two engines that were sent far more than they could take. Coefficients are
// fitted on the first half of the requests.
func (v *validation) servingsim(ctx context.Context) error {
	rows, err := load[datasets.Row](v, "vllm-engine-servingsim", "measured.csv.gz")
	if err != nil {
		return err
	}
	for _, c := range []struct {
		run    string
		limits Limits
	}{
		// 2,504 blocks are what the memory formula gives for the 23.5 GiB of an RTX 4090.
		{"servingsim-RTX4090-Llama-3.1-8B", Limits{MaxSeqs: 256, Blocks: 2504}},
		{"servingsim-RTXPRO6000-Llama-3.1-8B", Limits{MaxSeqs: 128}},
	} {
		rs, err := run(rows, c.run)
		if err != nil {
			return err
		}
		tr, err := NewTrace(rs, c.limits)
		if err != nil {
			return fmt.Errorf("run %s: %w", c.run, err)
		}
		half := len(tr.Requests) / 2
		f, err := FitRequests(ctx, []Trace{tr}, Unknown{Batched: []int{2048, 8192}}, func(_, i int) bool { return i < half })
		if err != nil {
			return fmt.Errorf("run %s: %w", c.run, err)
		}
		sim, err := Replay(f.Config(tr.Limits), tr.Requests)
		if err != nil {
			return err
		}
		fitted := fmt.Sprintf("first half: %d", f.Rows)
		for _, m := range []struct {
			name string
			of   column
		}{{"mean TTFT", ttft}, {"mean E2E", e2e}} {
			v.add(Check{
				Name: m.name + ", " + c.run, Rows: len(sim), Fitted: fitted, Limit: 0.20,
				Error: math.Abs(columnMean(sim, m.of)/columnMean(tr.Measured, m.of) - 1),
			})
			v.add(Check{
				Name: m.name + " of the second half, " + c.run, Rows: len(sim) - half, Fitted: fitted,
				Error: math.Abs(columnMean(sim[half:], m.of)/columnMean(tr.Measured[half:], m.of) - 1),
			})
		}
	}
	return nil
}

// sweeps replays guidellm's sweeps of engines whose coefficients are not in the table. They are fitted
// on the first two stages, one request after another and all at once; the constant rates are judged
// by these. max_num_batched_tokens is not recorded and differs between the runs, so it is fitted too.
func (v *validation) sweeps(ctx context.Context) error {
	rows, err := load[datasets.Row](v, "otel-vllm", "measured.csv.gz")
	if err != nil {
		return err
	}
	for _, c := range []struct {
		run    string
		prefix int // tokens that the prompts of a stage share: those are the hits in the log of its first stage
		limits Limits
	}{
		// Blocks are by the KV gauge of the engine's log over the open context.
		{"otel-jan20-codellama-prefill-1", 1024, Limits{MaxSeqs: 256, Blocks: 2770}},
		{"otel-jan20-codellama-train-1", 0, Limits{MaxSeqs: 256, Blocks: 2532}},
		{"otel-jan20-prefill-llama7b-tp1-1", 1024, Limits{MaxSeqs: 256, Blocks: 7349}}, // by the memory formula
	} {
		rs, err := run(rows, c.run)
		if err != nil {
			return err
		}
		if err := v.sweep(ctx, c.run, rs, c.prefix, c.limits); err != nil {
			return fmt.Errorf("run %s: %w", c.run, err)
		}
	}
	return nil
}

func (v *validation) sweep(ctx context.Context, name string, rows []datasets.Row, prefix int, limits Limits) error {
	tr, err := NewTrace(rows, limits)
	if err != nil {
		return err
	}
	starts := stages(rows)
	if len(starts) < 3 || len(tr.Requests) != len(rows) {
		return fmt.Errorf("%d stages, %d of %d requests: not the sweep that was expected", len(starts), len(tr.Requests), len(rows))
	}
	ends := append(starts[1:len(starts):len(starts)], len(rows))
	for s := range starts {
		for i := starts[s]; i < ends[s]; i++ {
			tr.Requests[i].Blocks = groupBlocks(s, min(prefix, tr.Requests[i].Prompt))
		}
	}
	const fittedStages = 2
	f, err := FitRequests(ctx, []Trace{tr}, Unknown{Lags: []int{0}, Batched: budgets()},
		func(_, i int) bool { return i < ends[fittedStages-1] })
	if err != nil {
		return err
	}
	sim, err := Replay(f.Config(limits), tr.Requests)
	if err != nil {
		return err
	}
	for s := range starts {
		fitted := fmt.Sprintf("the first two stages: %d", f.Rows)
		if s < fittedStages {
			fitted += ", this one among them"
		}
		got, want := sim[starts[s]:ends[s]], tr.Measured[starts[s]:ends[s]]
		for _, m := range []struct {
			name  string
			of    column
			least float64 // seconds: below, this is what the error is relative to
		}{{"mean TTFT", ttft, 0.5}, {"mean queue time", queue, 0}} {
			measured := columnMean(want, m.of)
			if m.least == 0 && measured <= 0.5 {
				continue
			}
			// Relative to at least 500 ms: 20 % of that are the 100 ms that are allowed in any case.
			v.add(Check{
				Name: fmt.Sprintf("%s, %s, stage %d", m.name, name, s+1), Rows: len(got), Fitted: fitted, Limit: 0.20,
				Error: math.Abs(columnMean(got, m.of)-measured) / max(measured, m.least),
			})
		}
	}
	return nil
}

// column picks one figure of a latency.
type column func(*Latency) float64

func ttft(l *Latency) float64  { return l.TTFT }
func e2e(l *Latency) float64   { return l.E2E }
func queue(l *Latency) float64 { return l.Queue }

// columnMean is the mean of what is known of a column; NaN: of nothing.
func columnMean(l []Latency, of column) float64 {
	s, n := 0.0, 0
	for i := range l {
		if x := of(&l[i]); !math.IsNaN(x) {
			s += x
			n++
		}
	}
	return s / float64(n)
}
