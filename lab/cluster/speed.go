package cluster

import (
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

// Speed runs the workload by which the simulator's speed is measured, for the caller to time: 8 H100
// with Llama-3.1-8B, round robin, Poisson arrivals of unshared prompts of 512 tokens with answers of
// 256, at about two thirds of what the engines can do. Router, ledger and scrapes run as in every run,
// but for what round robin does not ask for: there is no prefix index, and the ledger hears of tokens
// every 64. single turns macro-steps off.
func Speed(requests int, seed uint64, single bool) (*Report, error) {
	table, err := engine.Builtin()
	if err != nil {
		return nil, err
	}
	coefs, err := table.Find("H100", "llama-3.1-8b", 1, "")
	if err != nil {
		return nil, err
	}
	cfg := Config{
		Policy: baseline.NewRoundRobin(router.Params{}), Seed: seed, NoPrefixes: true, Progress: 64,
		SingleStep: single, Nodes: make([]Node, speedEngines),
	}
	for i := range cfg.Nodes {
		cfg.Nodes[i].Engine.Coefs = *coefs
	}
	return Run(cfg, &unshared{left: requests, rate: speedRate, rng: rand.New(rand.NewPCG(seed, 1))}, nil)
}

const (
	speedEngines = 8
	speedRate    = 25 * speedEngines // requests per second
)

// unshared yields equal requests whose prompts share nothing.
type unshared struct {
	left int
	rate float64
	rng  *rand.Rand
	n    uint64 // blocks so far
	at   time.Duration
	slab []uint64
}

const (
	unsharedPrompt = 512
	unsharedOutput = 256
	unsharedBlocks = (unsharedPrompt + unsharedOutput) / blockTokens
)

// Next implements [Source].
func (u *unshared) Next(j *Job) bool {
	if u.left == 0 {
		return false
	}
	u.left--
	u.at += time.Duration(u.rng.ExpFloat64() / u.rate * 1e9)
	if len(u.slab) < unsharedBlocks {
		u.slab = make([]uint64, 256*unsharedBlocks)
	}
	j.Blocks, u.slab = u.slab[:unsharedBlocks:unsharedBlocks], u.slab[unsharedBlocks:]
	for i := range j.Blocks {
		u.n++
		j.Blocks[i] = u.n * 0x9e3779b97f4a7c15
	}
	j.At, j.PromptTokens, j.OutputTokens = u.at, unsharedPrompt, unsharedOutput
	return true
}
