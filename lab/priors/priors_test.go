package priors

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/models/seed"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

func TestGoldenTable(t *testing.T) {
	path := filepath.Join("..", "..", "models", "seed", "table.go")
	got, err := Source()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("models/seed/table.go is stale; rewrite it with: make golden")
	}
}

// TestPriorsSayWhatEnginesTake: for every engine with a dense model the prior's decode step and TTFT
// on an idle engine are within 15 % of the engine's. Steps of mixtures of experts rise steeply with the
// first streams, each waking more experts, and then hardly any more: a straight law is off by up to
// 45 % of their steps and 25 % of their TTFT.
func TestPriorsSayWhatEnginesTake(t *testing.T) {
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	worstStep, worstFirst := map[bool]float64{}, map[bool]float64{}
	limitStep, limitFirst := map[bool]float64{false: .15, true: .45}, map[bool]float64{false: .15, true: .25}
	for _, c := range table {
		e, err := engine.New(engine.Config{Coefs: c})
		if err != nil {
			t.Fatal(err)
		}
		model := c.Model
		if c.DType == "fp8" {
			model += "-fp8"
		}
		law, ok := seed.Prior(fleet.Class{Model: model, GPU: c.GPU, TP: c.TP, Engine: "vllm"})
		if !ok {
			t.Fatalf("%s: no prior", c.String())
		}
		for _, n := range []int{1, 4, 16, 64, 128} {
			want := StepTime(e, n, n*1000)
			got := law.Phi[0] + law.Phi[1]*float64(n) + law.Phi[2]*float64(n*1000)
			off := math.Abs(got/want - 1)
			worstStep[c.MoE()] = max(worstStep[c.MoE()], off)
			if off > limitStep[c.MoE()] {
				t.Errorf("%s: step of %d takes %.2f ms, the prior says %.2f", c.String(), n, 1e3*want, 1e3*got)
			}
		}
		_, budget := engine.Limits(c.GPU)
		for _, u := range []int{64, 256, 512, 1000, 2000, 4000, 8000, 16000, 30000} {
			want, got := Cold(u).TTFT(e, budget), Cold(u).Said(&law)
			off := math.Abs(got/want - 1)
			worstFirst[c.MoE()] = max(worstFirst[c.MoE()], off)
			if off > limitFirst[c.MoE()] {
				t.Errorf("%s: cold prompt of %d takes %.1f ms, the prior says %.1f", c.String(), u, 1e3*want, 1e3*got)
			}
		}
	}
	for _, moe := range []bool{false, true} {
		t.Logf("mixture of experts %v: at most %.1f %% off in steps, %.1f %% in cold TTFT", moe, 100*worstStep[moe], 100*worstFirst[moe])
	}
}
