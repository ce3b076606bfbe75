package features

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// Unknown marks a count that was not reported. Unknown is not zero.
const Unknown = -1

// Observation is the one record of a finished request: logged, learned from, evaluated, exported.
// It holds no prompt and no answer text. Times are measured by the router's monotonic clock.
type Observation struct {
	ID       string    // decision id, unique in this process
	At       time.Time // of the decision
	API      request.API
	Model    string // as the client named it
	Adapter  string // LoRA adapter; empty: none
	Stream   bool   // the client asked for server-sent events
	SLO      request.SLO
	Priority int

	Endpoint string // where the request was really served
	Picked   string // where the decision sent it
	Policy   string // the policy that decided
	Arm      string // experiment arm; empty: none
	Session  uint64 // a hash of the session's id, another one in each process; 0: no session

	X      Vector   // the request on the picked endpoint; Schema says what the numbers mean
	Schema SchemaID // empty: there is no vector
	Where  Where    // class and instance of the picked endpoint
	Fore   Forecast // what was foretold of it; zero: nothing
	Said   Said     // by whom

	Propensity float64        // probability with which the policy picks this endpoint in this state, (0,1]
	Choice     Choice         // what it was drawn from; zero: it was not drawn to explore
	State      fleet.Inflight // ledger of the picked endpoint just before the decision
	Load       fleet.Load     // last scrape of the picked endpoint at the decision; names of adapters left out
	HitBlocks  int            // prefix blocks believed cached on the picked endpoint
	HitTokens  int            // the same in tokens
	Blocks     int            // full prefix blocks of the prompt

	MaxTokens    int // cap given by the client; 0: none
	PromptTokens int // as the engine reported, else as estimated (see ExactPrompt)
	ExactPrompt  bool
	CachedTokens int // prompt tokens served from cache, as the engine reported, or Unknown
	OutputTokens int // as the engine reported, else counted from events (see ExactOutput), or Unknown
	ExactOutput  bool

	TTFT   time.Duration // first token since the decision; 0: none seen
	ITL    time.Duration // mean gap after the first token; 0: fewer than two tokens
	E2E    time.Duration // end since the decision
	Cause  fleet.Cause
	Status int // HTTP status of the answer; 0: none seen
}

// MostExplored is how many endpoints an exploring policy draws from at most.
const MostExplored = 4

// Choice is what an exploring policy drew an endpoint from: its own pick and the next best by its
// costs. Off-policy estimates are made from it.
type Choice struct {
	Among int                   // endpoints that could be drawn, at most MostExplored; 0: nothing was drawn
	Rank  int                   // of the endpoint that was; 0: the policy's own pick
	TTFT  [MostExplored]float32 // foretold of each, in order of rank: the mean, in seconds; 0: nothing was foretold
}

// Comparable reports whether the times of the request can be held against what was foretold of it: it
// was streamed to its natural end by the endpoint that the forecast was made for.
func (o *Observation) Comparable() bool {
	return o.Stream && o.Cause == fleet.Complete && o.Status < 400 && o.Endpoint == o.Picked
}
