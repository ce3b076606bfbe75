package datasets

import "math"

// Unknown marks a count that the file does not give. Unknown is not zero.
const Unknown = -1

// Outcome says how a recorded request ended.
type Outcome uint8

// The ways a recorded request can have ended.
const (
	Completed Outcome = iota // answered in full, as far as the file says
	Suspect                  // answered, but its figures contradict each other
	Failed                   // an error, a refusal or a timeout: its latencies are no labels
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Completed:
		return "completed"
	case Suspect:
		return "suspect"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Row is one request of a trace or of a per-request measurement, whatever the format. Counts are
// [Unknown] and times NaN where the file does not give them; names are then empty.
type Row struct {
	Line     int    // line of the file, from 1; in a JSON document the number of the record
	Run      string // run within the file; empty: the file is one run
	ID       string
	Session  string
	Turn     int // of the session, as the file counts
	Model    string
	Endpoint string // server that answered

	Arrival float64 // seconds since the first request of the run (of the file, when Run is empty)

	Prompt    int // tokens
	Output    int // tokens; of a failed request what was received, if known
	Cached    int // prompt tokens served from the prefix cache, as the engine reported afterwards
	MaxTokens int // cap given by the client
	Images    int

	// Blocks are the ids of the prompt's prefix blocks, root first, each standing for BlockTokens
	// tokens (the last one for the rest). Equal ids in two rows mean equal content up to there.
	Blocks      []uint64
	BlockTokens int

	// Messages are the prompt's parts, where the file knows parts of unequal size instead of blocks.
	// Tools names the tool definitions that precede them, which have no size in the file.
	Messages []Message
	Tools    string

	Group       int // prefix group the request was drawn from
	GroupTokens int // tokens shared within the group; 0: it shares none

	TTFT  float64   // seconds from arrival to the first token
	ITL   float64   // seconds, mean gap after the first token (TPOT where the format says so)
	E2E   float64   // seconds from arrival to the end
	Queue float64   // seconds the engine says the request waited
	Gaps  []float64 // seconds, each gap after the first token, where the file lists them

	State State // of the endpoint or fleet when the request was sent

	Hardware   string // of the run, as the file names it
	Stack      string // serving stack of the run
	Replicas   int
	OfferedRPS float64 // requests per second offered in the run

	Outcome Outcome
	Code    int    // HTTP status; 0: none given
	Err     string // what went wrong, shortened; empty: nothing said
}

// Message is one part of a prompt: equal ids mean equal text.
type Message struct {
	ID    uint64
	Chars int
}

// State is what a row says about its endpoint (or, in files of measured.csv, about the whole fleet)
// when the request was sent. Gauges come from scrapes, in-flight figures from a client's or
// router's own count.
type State struct {
	Running   int     // gauge
	Waiting   int     // gauge
	KV        float64 // gauge, share of KV blocks in use, 0..1
	ScrapeAge float64 // seconds since the gauges were read

	Inflight      int     // other requests open
	Prefilling    int     // of those, without a first token
	Decoding      int     // of those, with one
	PrefillTokens int     // prompt tokens of the requests without a first token
	ContextTokens int     // prompt and generated tokens of the streaming requests
	HitShare      float64 // share of the prompt that the router believed cached, 0..1
}

// newRow returns a row of which nothing is known.
func newRow(line int) Row {
	nan := math.NaN()
	return Row{
		Line: line, Turn: Unknown, Arrival: nan,
		Prompt: Unknown, Output: Unknown, Cached: Unknown, MaxTokens: Unknown, Images: Unknown,
		Group: Unknown, GroupTokens: Unknown,
		TTFT: nan, ITL: nan, E2E: nan, Queue: nan,
		Replicas: Unknown, OfferedRPS: nan,
		State: State{
			Running: Unknown, Waiting: Unknown, KV: nan, ScrapeAge: nan,
			Inflight: Unknown, Prefilling: Unknown, Decoding: Unknown,
			PrefillTokens: Unknown, ContextTokens: Unknown, HitShare: nan,
		},
	}
}

// Known reports whether a time or share of a record is known.
func Known(v float64) bool { return !math.IsNaN(v) }
