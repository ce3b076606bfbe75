package seed

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
)

func class(gpu, model string, tp int) fleet.Class {
	return fleet.Class{GPU: gpu, Model: model, TP: tp, Engine: "vllm"}
}

func mustPrior(t testing.TB, gpu, model string, tp int) predictor.Law {
	t.Helper()
	l, ok := Prior(class(gpu, model, tp))
	if !ok {
		t.Fatalf("no prior for %s on %d %s", model, tp, gpu)
	}
	if err := l.Check(); err != nil {
		t.Fatalf("%s on %d %s: %v", model, tp, gpu, err)
	}
	return l
}

// step and cold are what a law says of a batch of 16 and of a prompt on an idle engine.
func step(l *predictor.Law) float64 { return l.Phi[0] + 16*l.Phi[1] + 16000*l.Phi[2] }

func cold(l *predictor.Law, u float64) float64 {
	return l.Theta[0] + l.Theta[1]*u + l.Theta[2]*u*u/2 + l.Theta[3]*(1.5+math.Ceil(u/l.Budget))*l.Phi[0]
}

func TestTheTableIsFoundByItsNames(t *testing.T) {
	for i := range fitted {
		e := &fitted[i]
		name := e.model
		if e.eight {
			name += "-fp8"
		}
		if got := mustPrior(t, e.gpu, name, e.tp); got != e.law {
			t.Errorf("%s on %d %s is not found", name, e.tp, e.gpu)
		}
	}
}

func TestNamesOfOneThing(t *testing.T) {
	want := mustPrior(t, "H100", "llama-3.1-8b", 1)
	for _, model := range []string{"meta-llama/Llama-3.1-8B-Instruct", "LLAMA-3.1-8B", "Meta-Llama-3.1-8B", "unsloth/llama_3.1_8b", "nvidia/Llama-3.1-8B-Instruct-BF16", "llama-3-8b"} {
		for _, gpu := range []string{"h100", "NVIDIA-H100-80GB-HBM3", "h100_sxm", "H100-SXM5-80GB", "NVIDIA H100 80GB HBM3"} {
			if got := mustPrior(t, gpu, model, 1); got != want {
				t.Errorf("%s on %s is another", model, gpu)
			}
		}
	}
	if mustPrior(t, "H100", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 4) == mustPrior(t, "H100", "llama-3.3-70b", 4) {
		t.Error("FP8 weights make no difference")
	}
	for _, pair := range [][2]string{{"H200", "H20"}, {"L40S", "L4"}, {"A100", "A10"}, {"H100", "H100-PCIe"}, {"A100-80GB", "A100-SXM4-40GB"}, {"GH200", "H200"}, {"GB200", "H200"}} {
		if mustPrior(t, pair[0], "llama-3.1-8b", 1) == mustPrior(t, pair[1], "llama-3.1-8b", 1) {
			t.Errorf("%s is taken for %s", pair[0], pair[1])
		}
	}
}

func TestSizesInNames(t *testing.T) {
	for name, want := range map[string][2]float64{
		"mistralai/Mistral-7B-Instruct-v0.3":             {7, 7},
		"Qwen/Qwen2.5-0.5B":                              {0.5, 0.5},
		"facebook/opt-125m":                              {0.125, 0.125},
		"mistralai/Mixtral-8x22B-v0.1":                   {146, 40},
		"Qwen/Qwen3-235B-A22B-Instruct-2507":             {235, 22},
		"openai/gpt-oss-20b":                             {20.9, 3.6},
		"deepseek-ai/DeepSeek-R1":                        {671, 37},
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B":       {32, 32},
		"meta-llama/Llama-4-Scout-17B-16E-Instruct":      {109, 17},
		"microsoft/phi-4":                                {14.7, 14.7},
		"hugging-quants/Llama-3.1-70B-Instruct-AWQ-INT4": {70, 70},
	} {
		m, ok := modelOf(name)
		if !ok || math.Abs(m.total/want[0]-1) > .03 || math.Abs(m.active/want[1]-1) > .06 {
			t.Errorf("%s: %+v, want %v", name, m, want)
		}
	}
}

func TestUnknownNamesHaveNoPrior(t *testing.T) {
	for _, c := range []fleet.Class{
		{}, class("H100", "", 1), class("", "llama-3.1-8b", 1), class("H100", "my-model", 1), class("gpu-7", "llama-3.1-8b", 1),
		class("H100", "b", 1), class("H100", "99999999b", 1), class("H100", "0b", 1), class("H100", "8x0b", 1),
		class("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "llama-3.1-8b", 1), class(strings.Repeat("H", 5000), strings.Repeat("8b-", 5000), 1),
	} {
		if l, ok := Prior(c); ok {
			t.Errorf("%.40q on %.40q: %+v", c.Model, c.GPU, l)
		}
	}
}

// TestGPUsAreInOrder: a faster accelerator is never believed slower, nor a larger model faster.
func TestGPUsAreInOrder(t *testing.T) {
	ordered := func(what string, laws ...predictor.Law) {
		t.Helper()
		for _, f := range []func(*predictor.Law) float64{step, func(l *predictor.Law) float64 { return cold(l, 4000) }} {
			var v []float64
			for i := range laws {
				v = append(v, f(&laws[i]))
			}
			for i := 1; i < len(v); i++ {
				if v[i] < 0.98*v[i-1] { // H100 and H200 compute alike
					t.Errorf("%s: %v", what, v)
				}
			}
		}
	}
	for _, model := range []string{"llama-3.1-8b", "qwen3-32b", "mistral-24b"} {
		ordered(model, mustPrior(t, "B200", model, 1), mustPrior(t, "H200", model, 1), mustPrior(t, "H100", model, 1), mustPrior(t, "A100", model, 1))
	}
	ordered("small GPUs", mustPrior(t, "A100", "llama-3.1-8b", 1), mustPrior(t, "L40S", "llama-3.1-8b", 1), mustPrior(t, "L4", "llama-3.1-8b", 1))
	ordered("small GPUs", mustPrior(t, "L40S", "llama-3.1-8b", 1), mustPrior(t, "A10G", "llama-3.1-8b", 1), mustPrior(t, "T4", "llama-3.1-8b", 1))
	ordered("TPUs", mustPrior(t, "TPU v6e", "llama-3.1-8b", 1), mustPrior(t, "tpu-v5-lite-podslice", "llama-3.1-8b", 1))
	for _, gpu := range []string{"H100", "L4", "MI300X", "A10G", "TPU-v5p"} {
		ordered(gpu, mustPrior(t, gpu, "qwen-1.5b", 1), mustPrior(t, gpu, "gemma-4b", 1), mustPrior(t, gpu, "x-9b", 1), mustPrior(t, gpu, "x-27b", 1), mustPrior(t, gpu, "x-72b", 1))
	}
	ordered("parallel", mustPrior(t, "H100", "llama-3.3-70b", 8), mustPrior(t, "H100", "llama-3.3-70b", 4), mustPrior(t, "H100", "llama-3.3-70b", 2))
}

// TestScalingAgreesWithTheTable: each law of the table, foretold from the others alone.
func TestScalingAgreesWithTheTable(t *testing.T) {
	var off []float64
	for i := range fitted {
		e := &fitted[i]
		rest := slices.Delete(slices.Clone(fitted), i, i+1)
		name := e.model
		if e.eight {
			name += "-fp8"
		}
		got, ok := prior(class(e.gpu, name, e.tp), rest)
		if !ok {
			t.Fatalf("%s on %s: no prior", name, e.gpu)
		}
		for _, v := range []float64{step(&got) / step(&e.law), cold(&got, 2000) / cold(&e.law, 2000)} {
			off = append(off, math.Abs(math.Log(v)))
			if v > 2.2 || v < 1/2.2 {
				t.Errorf("%s on %d %s: foretold %.2f times the measured", name, e.tp, e.gpu, v)
			}
		}
	}
	slices.Sort(off)
	median := math.Exp(off[len(off)/2]) - 1
	t.Logf("median %.0f %%, worst %.0f %%", 100*median, 100*(math.Exp(off[len(off)-1])-1))
	if median > .2 {
		t.Errorf("median error %.2f", median)
	}
}

func FuzzPrior(f *testing.F) {
	for _, s := range []string{"H100 llama-3.1-8b", "MIG-1g 8x7b", "TPU-v5e qwen3-30b-a3b-fp8", "H100SXM 1e9b"} {
		gpu, model, _ := strings.Cut(s, " ")
		f.Add(gpu, model, 1)
	}
	f.Fuzz(func(t *testing.T, gpu, model string, tp int) {
		l, ok := Prior(fleet.Class{GPU: gpu, Model: model, TP: min(tp, 1024)})
		if !ok {
			return
		}
		if err := l.Check(); err != nil || !(step(&l) > 0) || !(cold(&l, 1000) > 0) {
			t.Fatalf("%q on %q: %+v, %v", model, gpu, l, err)
		}
	})
}
