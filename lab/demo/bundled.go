package demo

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/lab/load"
)

// The bundled workload: assistants with long system prompts. Together the prefixes need five
// engines' caches, so that it matters who gets which.
const (
	groups       = 64
	prefixTokens = 2048
	prefixShare  = 0.08 // of one engine's KV
	zipf         = 0.9  // how much more popular the first groups are
	rate         = 20.0 // requests per second
	blockSize    = 16
)

// Workload is what the policies are given to do.
type Workload struct {
	load.Workload
	Blocks int // KV blocks of each engine, the null block included; 0: the GPU's own
}

// Bundled makes the bundled workload: Poisson arrivals, each with the prefix of one of 64 groups
// (Zipf) and a question and an answer of log-normal lengths. Equal seeds make equal workloads.
func Bundled(d time.Duration, seed uint64) *Workload {
	r := rand.New(rand.NewPCG(seed, 0x64656d6f))
	var weights [groups]float64
	sum := 0.0
	for i := range weights {
		sum += math.Pow(float64(i+1), -zipf)
		weights[i] = sum
	}
	w := &Workload{
		Workload: load.Workload{
			About: "64 prefixes of 2,048 tokens", Duration: d,
			SLO: load.SLO{TTFT: 150 * time.Millisecond, ITL: 25 * time.Millisecond},
		},
		Blocks: int(math.Ceil(prefixTokens/prefixShare/blockSize)) + 1,
	}
	length := func(median, sigma float64, low, high int) int {
		return min(max(int(median*math.Exp(sigma*r.NormFloat64())), low), high)
	}
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		if at >= d {
			return w
		}
		u, g := r.Float64()*sum, 0
		for weights[g] < u {
			g++
		}
		w.Jobs = append(w.Jobs, load.Job{
			At: at, Chat: true,
			Parts:  []load.Part{{Seed: seed + uint64(g), Tokens: prefixTokens}, {Seed: r.Uint64(), Tokens: length(60, 0.6, 8, 300)}},
			Output: length(30, 0.5, 8, 120),
		})
	}
}
