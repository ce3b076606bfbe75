package engine

// Request is what a caller submits. The engine keeps Blocks, and nothing else of it.
type Request struct {
	ID           uint64 // the caller's name for it, given back in events; need not be unique
	PromptTokens int    // at least 1
	OutputTokens int    // at least 1; generation ends exactly there

	// Blocks is the chain of hashes of the full blocks of prompt and answer, at the engine's block
	// size: equal hashes mean equal tokens from the start. It may be shorter than that (or nil):
	// blocks beyond it are never shared. It stays the caller's, must not be changed any more, and is
	// referenced as long as one of the blocks is cached.
	Blocks []uint64

	Adapter  int32 // LoRA adapter, 0 is none; the caller folds it into the hashes
	Priority int32 // lower goes first, with [Config].PriorityScheduling

	// Hold keeps the KV blocks after the end, for a transfer, until [Engine.Release].
	Hold bool
	// Remote says that the prompt's KV comes from another engine: blocks are allocated, [Allocated]
	// is told, and the request joins the batch after [Engine.Deliver].
	Remote bool
}

// Handle names a submitted request. The zero Handle names none. A handle whose request has ended
// is dead for ever: methods that get it change nothing.
type Handle struct {
	index int32
	gen   uint32
}
