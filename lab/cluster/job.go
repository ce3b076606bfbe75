package cluster

import (
	"time"

	"github.com/presage-router/presage/features/request"
)

// Job is one request of a client, as the workload describes it.
type Job struct {
	// At is when the client sends it: since the start of the run for jobs of a run's [Source], since
	// the end of the answer before for jobs of a Then source.
	At time.Duration

	Model    string // as the client names it; empty: any endpoint
	Adapter  int32  // LoRA adapter number; 0: none
	Session  string // session id a router may see; empty: none
	Tenant   string
	Class    string // of the workload, for reports: "interactive", "batch", …
	Priority int
	SLO      request.SLO // zero: none

	PromptTokens int // at least 1
	OutputTokens int // at least 1: what the engine will generate
	MaxTokens    int // what the client asked for at most; 0: it did not say

	// Blocks is the chain of hashes of the full 16-token blocks of prompt and answer; it may end
	// early or be nil, for text that nothing shares. Jobs of one conversation continue one chain. The
	// run keeps it while the request is open or one of its blocks is cached; it must not be changed.
	// Model, adapter and tenant salt are folded into the hashes by whoever makes them.
	Blocks []uint64

	Timeout     time.Duration // the client leaves if there is no end by then; 0: never
	CancelAfter int           // the client leaves after so many tokens; 0: it stays

	// Then continues the client: it is asked for the next job when this one has ended, in whatever
	// way, and that job's At counts from there. A following job whose own Then is nil is continued
	// by the same source. Nil: the client is done. Closed-loop users are jobs at time 0 with a Then
	// that never runs dry.
	Then Source
}

// Source yields jobs in order of their time. Next fills j, which is zero, and returns true, or
// returns false when there are no more. A source belongs to one run: sources with state are made
// anew for each, from the same seed.
type Source interface {
	Next(j *Job) bool
}

// Slice is a source that yields the jobs of a slice.
type Slice struct {
	Jobs []Job
	next int
}

// Next yields the next job of the slice.
func (s *Slice) Next(j *Job) bool {
	if s.next == len(s.Jobs) {
		return false
	}
	*j = s.Jobs[s.next]
	s.next++
	return true
}

var _ Source = (*Slice)(nil)
