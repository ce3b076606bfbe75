package engine

import "time"

// Stats is what a metrics page would show. Gauges are refreshed at the end of each step, as vLLM
// refreshes its own; counters are since the start of the engine.
type Stats struct {
	At time.Duration // end of the last step

	Waiting         int     // requests queued, those in [Stats].WaitingDeferred included
	WaitingDeferred int     // of these, waiting for an adapter slot or for KV from elsewhere
	Running         int     // requests in the batch
	KVUsage         float64 // share of the blocks in use, without reusable cached ones: 1 - free/(blocks-1)
	Blocks          int     // KV blocks, the null block included
	BlockSize       int     // tokens per block
	Reusable        int     // cached blocks that no request holds

	Steps            uint64
	Queries, Hits    uint64 // prefix-cache queries and hits, tokens; preempted requests are not counted again
	PromptTokens     uint64 // prompt tokens of requests whose prefill ended
	GenerationTokens uint64 // tokens made visible
	ComputedTokens   uint64 // prompt tokens computed, recomputation after preemption included
	Preemptions      uint64
	Evictions        uint64 // cached blocks evicted
	AdapterLoads     uint64 // LoRA adapters loaded into a slot

	Submitted, Completed, Cancelled, Failures uint64        // requests
	Busy                                      time.Duration // time spent in steps
}
