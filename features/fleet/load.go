package fleet

import "time"

// Known is a set of the fields of a [Load] that the engine's page really carried. A field that is
// not known is not zero: callers must ask before they read.
type Known uint16

// The fields of a Load that may be missing on an engine's page.
const (
	KnowWaiting Known = 1 << iota
	KnowRunning
	KnowKV
	KnowBlocks
	KnowLoRA
	KnowPrefix
	KnowTokens
	KnowPreemptions
)

// Has reports whether all fields of want are known.
func (k Known) Has(want Known) bool { return k&want == want }

// Load is what an engine said about itself, read from one metrics page. It is immutable once set.
// Several engines behind one address (data-parallel ranks on one page) are folded: counts are
// summed, KV usage is the mean, with the fullest rank beside it.
type Load struct {
	At          time.Time // when the page was received; zero: never scraped
	Known       Known     // which of the fields below the page carried
	Waiting     int32     // requests queued inside the engine
	Running     int32     // requests in the engine's batch
	KVUsage     float32   // share of KV blocks in use, 0..1, mean over ranks
	KVMax       float32   // the fullest rank's share, 0..1
	BlockSize   int32     // tokens per KV block
	Blocks      int32     // KV blocks, summed over ranks
	MaxLoRA     int32     // adapter slots; 0 unknown
	RunningLoRA []string  // adapters in the batch (with KnowLoRA)
	WaitingLoRA []string  // adapters whose requests wait (with KnowLoRA)
	Queries     float64   // prefix-cache queries, tokens, since engine start
	Hits        float64   // prefix-cache hits, tokens, since engine start
	Prompt      float64   // prompt tokens processed since engine start
	Generated   float64   // tokens generated since engine start
	Preemptions float64   // preemptions since engine start
	Errors      uint32    // consecutive failed scrapes since At
}

// KVTokens is the KV capacity in tokens, or 0 when the page did not say.
func (l *Load) KVTokens() int64 {
	if !l.Known.Has(KnowBlocks) {
		return 0
	}
	return int64(l.Blocks) * int64(l.BlockSize)
}

// noLoad is the Load of an endpoint that was never scraped.
var noLoad = &Load{}
