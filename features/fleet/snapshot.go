package fleet

import "time"

// Inflight is the router's own exact account of one endpoint instance: the work it dispatched there
// and has not seen end. Tokens are model tokens as estimated when the decision was made.
type Inflight struct {
	Requests      int32     // open requests: Pending + Streaming
	Pending       int32     // dispatched, no first token seen
	Streaming     int32     // first token seen, not ended
	PendingTokens int64     // prompt tokens of the pending requests
	Uncached      int64     // prompt tokens of the pending requests that the endpoint must compute
	Attention     int64     // sum over pending of u*(2c+u), u uncached and c cached tokens: twice the attention work in token^2
	HeadUncached  int64     // of Uncached, those of the oldest pending request
	Context       int64     // prompt and generated tokens of the streaming requests
	OldestPending time.Time // dispatch time of the oldest pending request; zero: none
	LastBegin     time.Time // last dispatch; zero: never
	LastFirst     time.Time // last first token; zero: never
	LastToken     time.Time // last token of any kind; zero: never
	LastEnd       time.Time // last end of a request; zero: never
	Begun         uint64    // requests ever dispatched
	BegunUncached uint64    // uncached tokens ever dispatched
}

// State is one endpoint at one instant.
type State struct {
	*Endpoint           // never nil in a Snapshot
	*Load               // last scrape, never nil; its zero value if there was none
	Inflight            // the ledger
	Recent              // what just happened
	Slot      int       // dense number of the instance, below Snapshot.Slots; reused after removal with a new Instance
	Instance  uint64    // unique for ever
	Since     time.Time // when the instance joined
	Class     ClassID   // never changes while the instance lives
}

// Snapshot is the fleet at one instant. It belongs to the caller who had it filled; its pointers
// lead to immutable values.
type Snapshot struct {
	Gen    uint64    // changes when the set of endpoints changes
	At     time.Time // the instant the caller gave
	Slots  int       // upper bound of State.Slot, for arrays indexed by slot
	States []State   // in order of slot; draining endpoints included
}
