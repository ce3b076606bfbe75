package calibrate

import (
	"context"
	"fmt"
	"math"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/engine"
)

// passes fits the step-time form to every run of recorded passes. Runs of less than 4,000 passes are
// shown only.
func (v *validation) passes(ctx context.Context) error {
	records, err := load[datasets.Pass](v, "vllm-fpm-aiconfigurator", "passes.csv.gz")
	if err != nil {
		return err
	}
	names, runs := byRun(records, func(p *datasets.Pass) string { return p.Run })
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := FitPasses(runs[name])
		if err != nil {
			return fmt.Errorf("run %s: %w", name, err)
		}
		c := Check{Name: "step time, " + name, Rows: f.Held, Fitted: fmt.Sprintf("every other pass: %d", f.Fitted), Error: f.Error}
		switch {
		case len(runs[name]) < 4000:
		case runs[name][0].Model == "Qwen3-32B": // the one dense model of the recording
			c.Limit = 0.06
		default:
			c.Limit = 0.10
		}
		v.add(c)
		v.add(Check{Name: "step time with prefill, " + name, Rows: f.HeldPrefill, Fitted: c.Fitted, Error: f.ErrorPrefill})
	}
	return nil
}

// silicon runs closed loops at the operating points of a published table.
func (v *validation) silicon(context.Context) error {
	points, err := load[datasets.Aggregate](v, "silicon-aggregates", "silicon.csv.gz")
	if err != nil {
		return err
	}
	const llama, qwen = "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-32B"
	for _, c := range []struct {
		gpu, system, published, model, dtype, precision string
		tp, longest                                     int
		profile                                         engine.Profile
		limit                                           float64
	}{
		{"H100", "h100_sxm", qwen, "qwen3-32b", "", "", 2, math.MaxInt, engine.Sync(), 0.05},
		{"H100", "h100_sxm", llama, "llama-3.3-70b", "fp8", "fp8", 4, 1024, engine.Async(), 0.05},
		{"H200", "h200_sxm", llama, "llama-3.3-70b", "fp8", "fp8", 2, 1024, engine.Async(), 0.05},
		{"B200", "b200_sxm", llama, "llama-3.3-70b", "fp8", "fp8", 1, 1024, engine.Async(), 0.12},
	} {
		coefs, err := v.table.Find(c.gpu, c.model, c.tp, c.dtype)
		if err != nil {
			return err
		}
		var sim, measured []float64
		for _, p := range points {
			if p.Backend != "vllm" || p.Mode != "agg" || p.Model != c.published || p.System != c.system || p.Precision != c.precision ||
				p.TP != c.tp || p.OSL > c.longest || p.Concurrency < 1 || !datasets.Known(p.TPOT) {
				continue
			}
			_, tpot, err := ClosedLoop(engine.Config{Coefs: *coefs, Profile: c.profile}, p.Concurrency, p.ISL, p.OSL)
			if err != nil {
				return fmt.Errorf("%s line %d: %w", "silicon.csv.gz", p.Line, err)
			}
			sim, measured = append(sim, tpot), append(measured, p.TPOT)
		}
		v.add(Check{
			Name: fmt.Sprintf("TPOT, %s, %s", coefs, c.profile.Name), Rows: len(sim), Fitted: nothing,
			Error: stat.MAPE(sim, measured), Limit: c.limit,
		})
	}
	return nil
}

// cold compares the first token of a prompt that no cache holds.
func (v *validation) cold(context.Context) error {
	const name = "aibrix-v0.2.1-naive-q0.1"
	rows, err := load[datasets.Row](v, "aibrix-bench-a100", "measured.csv.gz")
	if err != nil {
		return err
	}
	rows, err = run(rows, name)
	if err != nil {
		return err
	}
	coefs, err := v.table.Find("A100", "llama-3.1-8b", 1, "")
	if err != nil {
		return err
	}
	var sim, measured []float64
	for i := range rows {
		l, err := Replay(engine.Config{Coefs: *coefs}, []Request{{Prompt: rows[i].Prompt, Output: rows[i].Output}})
		if err != nil {
			return err
		}
		sim, measured = append(sim, l[0].TTFT), append(measured, rows[i].TTFT)
	}
	v.add(Check{
		Name: "cold TTFT, " + name, Rows: len(rows), Fitted: nothing,
		Error: math.Abs(stat.Mean(sim)/stat.Mean(measured) - 1), Limit: 0.05,
	})
	return nil
}

// capacity compares the memory formula with the block counts that engines told.
func (v *validation) capacity(context.Context) error {
	steps, err := load[datasets.Step](v, "vllm-steps", "steps.csv.gz")
	if err != nil {
		return err
	}
	llama, ok := engine.ShapeOf("llama-2-70b")
	if !ok {
		return fmt.Errorf("model llama-2-70b: its shape is not known")
	}
	shapes := map[string]engine.Shape{
		"20260217-202857-llama-2-70b-tp4-general":    llama,
		"20260217-203421-llama-2-70b-hf-tp4-codegen": llama,
		"20260218-150304-codellama-34b-tp2-general":  codeLlama34B(),
	}
	names, runs := byRun(steps, func(s *datasets.Step) string { return s.Run })
	for _, name := range names {
		shape, ok := shapes[name]
		if !ok {
			continue
		}
		first := runs[name][0]
		blocks, err := engine.KVBlocks("H100", &shape, first.TP, "", 16)
		if err != nil {
			return err
		}
		v.add(Check{
			Name: "KV blocks, " + name, Rows: len(runs[name]), Fitted: nothing,
			Error: math.Abs(float64(blocks)/float64(first.Blocks) - 1), Limit: 0.02,
		})
	}
	return nil
}

// codeLlama34B is the shape of codellama/CodeLlama-34b by its configuration.
func codeLlama34B() engine.Shape {
	return engine.Shape{Model: "codellama-34b", Params: 33.74e9, Embedding: 0.52e9, Layers: 48, KVHeads: 8, HeadDim: 128}
}
