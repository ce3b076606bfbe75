package engine

import (
	"fmt"
	"strings"
)

// Shape is what of a model decides its memory.
type Shape struct {
	Model     string
	Params    float64 // parameters, all experts included
	Embedding float64 // of these, in the embedding and the LM head: 2 bytes whatever the dtype
	Layers    int
	KVHeads   int
	HeadDim   int
	MoE       bool
}

// Memory is a GPU type's usable memory.
type Memory struct {
	GPU string
	GiB float64
}

const (
	gib          = 1 << 30
	utilization  = 0.9 // vLLM's gpu_memory_utilization
	overheadGiB  = 1.3 // activations, CUDA graphs and context
	defaultBlock = 16  // vLLM's block_size
	maxBlocks    = 1 << 28
)

func memories() []Memory {
	return []Memory{{"H100", 79.19}, {"H200", 139.8}, {"A100", 79.15}, {"L40S", 44.4}, {"B200", 178.35}}
}

// Shapes returns the models whose memory is known.
func Shapes() []Shape {
	return []Shape{
		{Model: "llama-3.1-8b", Params: 8.03e9, Embedding: 1.05e9, Layers: 32, KVHeads: 8, HeadDim: 128},
		{Model: "llama-3.3-70b", Params: 70.55e9, Embedding: 2.10e9, Layers: 80, KVHeads: 8, HeadDim: 128},
		{Model: "llama-2-7b", Params: 6.74e9, Embedding: 0.26e9, Layers: 32, KVHeads: 32, HeadDim: 128},
		{Model: "llama-2-70b", Params: 68.98e9, Embedding: 0.52e9, Layers: 80, KVHeads: 8, HeadDim: 128},
		{Model: "codellama-34b", Params: 33.74e9, Embedding: 0.52e9, Layers: 48, KVHeads: 8, HeadDim: 128},
		{Model: "qwen3-14b", Params: 14.77e9, Embedding: 1.56e9, Layers: 40, KVHeads: 8, HeadDim: 128},
		{Model: "qwen3-32b", Params: 32.76e9, Embedding: 1.56e9, Layers: 64, KVHeads: 8, HeadDim: 128},
		{Model: "qwen2.5-7b", Params: 7.62e9, Embedding: 1.09e9, Layers: 28, KVHeads: 4, HeadDim: 128},
		{Model: "mistral-nemo-12b", Params: 12.25e9, Embedding: 1.34e9, Layers: 40, KVHeads: 8, HeadDim: 128},
		{Model: "yi-34b", Params: 34.39e9, Embedding: 0.92e9, Layers: 60, KVHeads: 8, HeadDim: 128},
		{Model: "qwen3-30b-a3b", Params: 30.53e9, Embedding: 0.62e9, Layers: 48, KVHeads: 4, HeadDim: 128, MoE: true},
		{Model: "mixtral-8x7b", Params: 46.70e9, Embedding: 0.26e9, Layers: 32, KVHeads: 8, HeadDim: 128, MoE: true},
		{Model: "gpt-oss-120b", Params: 116.83e9, Embedding: 1.16e9, Layers: 36, KVHeads: 8, HeadDim: 64, MoE: true},
	}
}

// ShapeOf returns the shape of a model.
func ShapeOf(model string) (Shape, bool) {
	for _, s := range Shapes() {
		if s.Model == strings.ToLower(model) {
			return s, true
		}
	}
	return Shape{}, false
}

// KVBytes is the size of one token's KV on all GPUs of the engine together, for a KV cache of 2
// bytes per value.
func (s *Shape) KVBytes() int { return 2 * s.Layers * s.KVHeads * s.HeadDim * 2 }

// KVBlocks is the number of KV blocks vLLM allocates, by the memory formula
//
//	tokens = (0.9*memory - weights/TP - 1.3 GiB) / (2*layers*ceil(kvheads/TP)*headdim*2 B)
//
// within 1.5 % of the counts in measured vLLM logs. Weights take 2 bytes per parameter in
// bfloat16, 1 in fp8. blockSize is tokens per block.
func KVBlocks(gpu string, s *Shape, tp int, dtype string, blockSize int) (int, error) {
	if tp < 1 || blockSize < 1 {
		return 0, fmt.Errorf("tp %d, block size %d: not positive", tp, blockSize)
	}
	gpu = ShortGPU(gpu)
	for _, m := range memories() {
		if m.GPU != gpu {
			continue
		}
		width := 2.0
		switch shortDType(dtype) {
		case "", "bfloat16":
		case "fp8":
			width = 1
		default:
			return 0, fmt.Errorf("dtype %q: unknown; use bfloat16 or fp8", dtype)
		}
		free := (utilization*m.GiB-overheadGiB)*gib - (width*(s.Params-s.Embedding)+2*s.Embedding)/float64(tp)
		perToken := float64(2 * s.Layers * ((s.KVHeads + tp - 1) / tp) * s.HeadDim * 2)
		blocks := int(free / perToken / float64(blockSize))
		if blocks < 2 {
			return 0, fmt.Errorf("%s does not fit %s with tp %d: no memory left for the KV cache", s.Model, gpu, tp)
		}
		return blocks, nil
	}
	return 0, fmt.Errorf("gpu %q: its memory is not known", gpu)
}
