package engine

import (
	"errors"
	"fmt"
	"time"
)

// Config describes an engine. Coefs must be set; the zero value of any other field means the
// default given with it.
type Config struct {
	Coefs     Coefs
	Blocks    int // KV blocks, the null block included; 0: of the coefficients
	BlockSize int // tokens per block; 0: 16

	MaxSeqs    int // max_num_seqs; 0: vLLM's default for the GPU
	MaxBatched int // max_num_batched_tokens; 0: vLLM's default for the GPU
	// LongPrefill is long_prefill_token_threshold: a prompt's share of a step, while another request
	// is there; 0: off.
	LongPrefill int
	Watermark   float64 // share of the blocks kept free at admissions; 0: none
	NoCache     bool    // prefix caching off
	// PriorityScheduling orders the queue by (priority, arrival) and preempts the last in this order.
	PriorityScheduling bool

	Profile  Profile // overheads; the zero value is [Async]
	Kernel   float64 // mk: factor on the work outside attention; 0: 0.88 for mixtures of experts on Hopper, else 1
	Slowdown float64 // factor on every step; 0: 1

	Noise float64 // sigma of the log-normal factor on each step, with mean 1 in the logarithm's sense; 0: none
	Seed  uint64  // of the noise

	MaxLoRA  int           // adapter slots; 0: adapters are free of cost and limit
	LoRASwap time.Duration // loading an adapter seen before; 0: 15 ms
	LoRACold time.Duration // loading an adapter for the first time; 0: 500 ms

	Progress   int  // tell every so many tokens; 0: only the first token and the end
	KVEvents   bool // collect KV events
	SingleStep bool // no macro-steps
}

// Errors of [Engine.Submit].
var (
	// ErrTooLong: the request would never fit into the KV cache.
	ErrTooLong = errors.New("request does not fit into the KV cache")
	// ErrDead: the engine is dead.
	ErrDead = errors.New("engine is dead")
	// ErrInvalid: the request has no prompt or asks for no output.
	ErrInvalid = errors.New("request has no prompt token or asks for no output token")
)

// Limits are vLLM 0.32's server defaults of max_num_seqs and max_num_batched_tokens for a GPU type
// (engine/arg_utils.py): by memory, with A100 among the small ones. Unknown GPUs are small.
func Limits(gpu string) (maxSeqs, maxBatched int) {
	switch ShortGPU(gpu) {
	case "B200":
		return 1024, 16384
	case "H100", "H200":
		return 1024, 8192
	}
	return 256, 2048
}

// loraFactor is the cost of a step with any LoRA request in it.
const loraFactor = 1.1

// defaults fills what is zero and checks the rest.
func (c *Config) defaults() error {
	if err := c.Coefs.check(); err != nil {
		return fmt.Errorf("coefficients of %s: %w", c.Coefs.String(), err)
	}
	seqs, batched := Limits(c.Coefs.GPU)
	setDefault(&c.BlockSize, defaultBlock)
	if c.Blocks == 0 {
		c.Blocks = max(2, c.Coefs.KVBlocks*defaultBlock/max(c.BlockSize, 1))
	}
	setDefault(&c.MaxSeqs, seqs)
	setDefault(&c.MaxBatched, max(batched, c.MaxSeqs))
	setDefault(&c.Kernel, kernelFactor(&c.Coefs))
	setDefault(&c.Slowdown, 1)
	setDefault(&c.LoRASwap, 15*time.Millisecond)
	setDefault(&c.LoRACold, 500*time.Millisecond)
	if c.Profile == (Profile{}) {
		c.Profile = Async()
	}
	return c.check()
}

func (c *Config) check() error {
	switch {
	case c.BlockSize < 1 || c.BlockSize > 1<<16:
		return fmt.Errorf("block size %d: not within 1 and 65536", c.BlockSize)
	case c.Blocks < 2 || c.Blocks > maxBlocks:
		return fmt.Errorf("blocks %d: not within 2 and %d", c.Blocks, maxBlocks)
	case c.MaxSeqs < 1 || c.MaxSeqs > 1<<16:
		return fmt.Errorf("max seqs %d: not within 1 and 65536", c.MaxSeqs)
	case c.MaxBatched < c.MaxSeqs || c.MaxBatched > 1<<24:
		return fmt.Errorf("max batched tokens %d: not within max seqs %d and %d", c.MaxBatched, c.MaxSeqs, 1<<24)
	case c.LongPrefill < 0:
		return fmt.Errorf("long prefill threshold %d: negative", c.LongPrefill)
	case !within(c.Watermark, 0, 0.9):
		return fmt.Errorf("watermark %v: not within 0 and 0.9", c.Watermark)
	case !within(c.Kernel, 0.01, 100):
		return fmt.Errorf("kernel factor %v: not within 0.01 and 100", c.Kernel)
	case !within(c.Slowdown, 0.01, maxSlowdown):
		return fmt.Errorf("slowdown %v: not within 0.01 and %d", c.Slowdown, maxSlowdown)
	case !within(c.Noise, 0, 1):
		return fmt.Errorf("noise %v: not within 0 and 1", c.Noise)
	case c.MaxLoRA < 0 || c.MaxLoRA > 4096:
		return fmt.Errorf("adapter slots %d: not within 0 and 4096", c.MaxLoRA)
	case c.LoRASwap < 0 || c.LoRACold < 0:
		return fmt.Errorf("adapter load times %v, %v: negative", c.LoRASwap, c.LoRACold)
	case c.Progress < 0 || c.Progress > maxProgress:
		return fmt.Errorf("progress every %d tokens: not within 0 and %d", c.Progress, maxProgress)
	}
	return c.Profile.check()
}

const (
	maxSlowdown = 1000
	maxProgress = 1 << 16
)

func kernelFactor(c *Coefs) float64 {
	if c.GPU == "B200" && c.Model == "gpt-oss-120b" {
		return 0.65
	}
	if c.MoE() && (c.GPU == "H100" || c.GPU == "H200") {
		return 0.88
	}
	return 1
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
