package fleet

import (
	"slices"
	"time"
)

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

	Held        Known     // fields the page lacked or spoiled: their values are from an earlier page
	HeldAt      time.Time // receipt of the oldest held value; zero: nothing is held
	ChangedAt   time.Time // receipt of the first page since when gauges and counters stand still
	Own         int32     // requests the router itself had open there when the page was asked for
	Restarts    uint32    // engine restarts seen since the endpoint joined: a counter went back
	Unreachable bool      // the last scrape got no HTTP answer at all: refused, reset or timed out
}

// KVTokens is the KV capacity in tokens, or 0 when the page did not say.
func (l *Load) KVTokens() int64 {
	if !l.Known.Has(KnowBlocks) {
		return 0
	}
	return int64(l.Blocks) * int64(l.BlockSize)
}

// Foreign is how many requests of others the engine held at the scrape: what it ran and queued
// beyond the router's own open requests. The page and the ledger are not read at the same instant,
// so a difference of one means nothing.
func (l *Load) Foreign() (n int32, ok bool) {
	if !l.Known.Has(KnowWaiting | KnowRunning) {
		return 0, false
	}
	return max(0, l.Waiting+l.Running-l.Own), true
}

// FreeLoRA is the number of adapter slots that no running or waiting adapter holds; an adapter in
// both lists counts once.
func (l *Load) FreeLoRA() (n int32, ok bool) {
	if !l.Known.Has(KnowLoRA) || l.MaxLoRA == 0 {
		return 0, false
	}
	n = l.MaxLoRA - int32(len(l.RunningLoRA))
	for _, a := range l.WaitingLoRA {
		if !slices.Contains(l.RunningLoRA, a) {
			n--
		}
	}
	return max(0, n), true
}

// noLoad is the Load of an endpoint that was never scraped.
var noLoad = &Load{}
