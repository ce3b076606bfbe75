package engine

import "time"

// Kind says what an [Event] tells of its request.
type Kind uint8

// The kinds of events, in the order in which a request passes them.
const (
	Scheduled  Kind = iota // admitted to the batch for the first time; N: prompt tokens found in the prefix cache
	Allocated              // KV blocks are reserved, the prompt's KV is awaited ([Request.Remote]); N: tokens to transfer
	FirstToken             // the first token is visible; N is 1
	Progress               // N tokens are visible in all ([Config].Progress)
	Preempted              // blocks taken away, back to the head of the queue; N: tokens generated so far
	Finished               // all N tokens are visible; the handle is dead, unless [Request.Hold]
	Failed                 // the engine died; N: tokens generated so far; the handle is dead
)

// String returns the kind's name in logs.
func (k Kind) String() string {
	switch k {
	case Scheduled:
		return "scheduled"
	case Allocated:
		return "allocated"
	case FirstToken:
		return "first_token"
	case Progress:
		return "progress"
	case Preempted:
		return "preempted"
	case Finished:
		return "finished"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Event is something that happened to a request. Tokens become visible at the end of the step that
// computed them.
type Event struct {
	At   time.Duration // when it happened, since the caller's epoch
	ID   uint64        // [Request].ID
	N    int32         // see the kind
	Kind Kind
}

// KVKind says what a [KVEvent] tells.
type KVKind uint8

// The kinds of KV events.
const (
	Stored  KVKind = iota // full blocks of a request entered the prefix cache
	Removed               // blocks were evicted
	Cleared               // the whole prefix cache is gone
)

// KVEvent is a change of the prefix cache, as vLLM publishes it. Events come in the order in which
// they happened.
type KVEvent struct {
	At     time.Duration
	Kind   KVKind
	ID     uint64   // Stored: the request whose chain holds the blocks
	First  int      // Stored: index of Hashes[0] in the request's chain, so that the caller can name the tokens
	Parent uint64   // Stored: hash of the block before; meaningful when First > 0
	Hashes []uint64 // the blocks, in order of the chain; part of some [Request].Blocks, not to be changed
}
