package cluster

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/engine"
)

// Record is what became of one request, as its client saw it. Times of answers include all delays on
// the way.
type Record struct {
	Number   uint64        // in order of decisions, from 0
	Sent     time.Duration // by the client, since the start of the run
	Class    string
	Session  string
	Tenant   string
	Adapter  int32
	Priority int
	SLO      request.SLO

	Node       int // that served it; -1: refused by the router
	Prefill    int // that prefilled it under disaggregation, or -1
	Policy     string
	Arm        string
	Propensity float64

	PromptTokens   int
	OutputTokens   int      // that the client got; without an end, as far as the router heard ([Config].Progress)
	Blocks         []uint64 // chain of hashes of the full 16-token blocks of prompt and answer; nil: nothing shares it. Valid during the call.
	BelievedTokens int      // prompt tokens the router believed cached on the engine
	CachedTokens   int      // prompt tokens that were; -1: the engine did not come to it
	Preemptions    int

	Queue time.Duration // from arriving at the engine to its first step; 0: it did not come to it
	TTFT  time.Duration // 0: no token came
	ITL   time.Duration // mean gap after the first token; 0: fewer than two tokens
	E2E   time.Duration
	Cause fleet.Cause // Complete, or why not; refused requests have UpstreamError and Node -1
	Met   bool        // complete, and every SLO it carried met
}

// Totals are what an engine did in a run.
type Totals struct {
	Name     string
	Requests uint64 // sent to it
	engine.Stats
}

// Report is what a run as a whole was.
type Report struct {
	Requests  uint64        // sent by clients
	Complete  uint64        // answered to the end
	Met       uint64        // within all SLOs they carried
	Refused   uint64        // by the router
	Failed    uint64        // by engines
	Left      uint64        // clients that left
	End       time.Duration // when the last request had ended
	Steps     uint64        // of all engines
	Events    uint64        // steps, what engines told, decisions and timers: what the simulator processed
	Fallbacks uint64        // decisions the policy failed to make
	Nodes     []Totals
}

// met reports whether a complete request kept the SLOs it carried.
func (r *Record) met() bool {
	return r.Cause == fleet.Complete &&
		(r.SLO.TTFT == 0 || r.TTFT <= r.SLO.TTFT) &&
		(r.SLO.ITL == 0 || r.ITL <= r.SLO.ITL) &&
		(r.SLO.E2E == 0 || r.E2E <= r.SLO.E2E)
}
