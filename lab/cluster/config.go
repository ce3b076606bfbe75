package cluster

import (
	"fmt"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/outlier"
)

// Node is one engine behind one endpoint of the fleet.
type Node struct {
	Name   string        // of the endpoint; empty: made of the GPU type and the number, as h100-3
	Engine engine.Config // its Progress, KVEvents and Seed are the run's business
	Role   fleet.Role
	Labels map[string]string
}

// Config describes a run. Nodes and Policy must be set; policies have state, so each run needs one
// of its own. The zero value of any other field means what is said with it.
type Config struct {
	Nodes  []Node
	Policy router.Policy
	// Prefixes is the router's belief of who caches what; nil: a fresh prefix.Index whose capacities
	// follow the scraped sizes of the engines' caches, as in the service.
	Prefixes   router.Prefixes
	NoPrefixes bool            // the router keeps no such belief
	Observer   router.Observer // gets the record of every request, as a learner does in the service
	Recorder   router.Recorder
	Learner    *predictor.Learner // foretells, and learns from every first token and end at once; nil: nothing is foretold
	Forecast   *predictor.Handle  // foretells, where there is no Learner: the caller teaches; nil: nothing is foretold
	Seer       Seer               // is shown each request and the engines before the decision; nil: the policy, where it is one
	Ticker     router.Ticker      // is shown the fleet when pages have come, beside the policy; nil: nobody
	Outliers   *outlier.Detector  // keeps engines that do not work out of the decisions; nil: nothing does
	// Peers are further routers before the same engines, each with a ledger, an index and a learner of
	// its own. They hear of each other's work only through the engines' pages; every request comes to one
	// of all routers, drawn by Seed. Observer, Recorder, Ticker, Seer and Forecast serve them all.
	Peers      []Peer
	LabelDelay time.Duration // forecasts rest on what learners knew so long ago
	Untaught   bool          // learners are taught lengths of answers and cache hits, but no time: they foretell by their priors
	Unlabelled bool          // endpoints tell neither GPU nor width: those of one model are of one class
	Seed       uint64        // of the policy's draws, of the noise of engines, of their faults
	SingleStep bool          // no macro-steps

	Adapters int // LoRA adapters 1..n that every endpoint can load, named adapter-1, …
	// PrefixBlock is the size of the router's prefix blocks in tokens, a multiple of 16; 0: 64, which
	// are the service's 256 bytes of text.
	PrefixBlock int
	// Progress is after how many tokens of an answer the router hears of them; 0: 16. Smaller is nearer to
	// the service, which hears of each, and slower.
	Progress int

	// Client to router, router to engine, engine to router; each is added on the way. Answers take
	// the client's way back too.
	Uplink, Dispatch, Return time.Duration

	Scrape    time.Duration // interval of scrapes; 0: 200 ms; below 0: the router never sees a load
	ScrapeAge time.Duration // from when an engine writes its page until the router has it

	// Duration ends the workload: nothing is sent at or after it, what is open runs to its end.
	// 0: until the source has no more.
	Duration time.Duration
	Events   []Event // in any order

	Transfer Transfer // of KV between prefill and decode engines
}

// Transfer is the link that KV takes from a prefill engine to a decode engine: Setup plus bytes over
// Rate, one transfer of a prefill engine after the other.
type Transfer struct {
	Setup time.Duration // 0: 1.5 ms, as by RDMA
	Rate  float64       // bytes per second; 0: 40e9, as by NDR InfiniBand
}

// EventKind is what an [Event] does to an engine.
type EventKind uint8

// The kinds of events.
const (
	Slow    EventKind = iota // every step takes Factor times as long from now on; 1 ends it
	Stall                    // no step ends for Length
	Kill                     // the engine dies with all its requests; new ones are refused
	Revive                   // a dead engine comes back with an empty cache
	Upgrade                  // Profile (where it has a name) and the limits (where above 0) change
	Fail                     // a share Factor of the requests is answered 500 at once; 0 ends it
	Blind                    // its metrics stay as they are while it serves, for Length; 0: to the end
)

// Event happens to some engines at one instant.
type Event struct {
	At                  time.Duration
	Nodes               []int
	Kind                EventKind
	Factor              float64
	Length              time.Duration
	Profile             engine.Profile
	MaxSeqs, MaxBatched int
}

const blockTokens = 16 // of the chains of jobs

func (c *Config) defaults() {
	setDefault(&c.PrefixBlock, 64)
	setDefault(&c.Progress, 16)
	setDefault(&c.Scrape, 200*time.Millisecond)
	setDefault(&c.Transfer.Setup, 1500*time.Microsecond)
	setDefault(&c.Transfer.Rate, 40e9)
}

func (c *Config) check() error {
	switch {
	case len(c.Nodes) == 0:
		return fmt.Errorf("no engines")
	case c.Policy == nil:
		return fmt.Errorf("no policy")
	case c.PrefixBlock < blockTokens || c.PrefixBlock%blockTokens != 0:
		return fmt.Errorf("prefix block of %d tokens: not a multiple of %d", c.PrefixBlock, blockTokens)
	case c.Progress < 1 || c.Progress > 1<<16:
		return fmt.Errorf("progress every %d tokens: not within 1 and 65536", c.Progress)
	case c.Adapters < 0 || c.Adapters > 1<<16:
		return fmt.Errorf("%d adapters: not within 0 and 65536", c.Adapters)
	case c.Uplink < 0 || c.Dispatch < 0 || c.Return < 0 || c.ScrapeAge < 0 || c.Duration < 0 || c.LabelDelay < 0 || c.Transfer.Setup < 0:
		return fmt.Errorf("a delay is negative")
	case c.Scrape > 0 && c.Scrape < time.Millisecond:
		return fmt.Errorf("scrapes every %v: below 1 ms", c.Scrape)
	case !(c.Transfer.Rate > 0):
		return fmt.Errorf("transfer rate %v bytes per second: not above 0", c.Transfer.Rate)
	}
	for k := range c.Peers {
		if c.Peers[k].Policy == nil {
			return fmt.Errorf("router %d: no policy", k+2)
		}
	}
	for i := range c.Nodes {
		if b := c.Nodes[i].Engine.BlockSize; b != 0 && b != blockTokens {
			return fmt.Errorf("engine %d: block size %d: chains of jobs have blocks of %d", i, b, blockTokens)
		}
	}
	for i := range c.Events {
		if err := c.checkEvent(&c.Events[i]); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return nil
}

func (c *Config) checkEvent(e *Event) error {
	for _, n := range e.Nodes {
		if n < 0 || n >= len(c.Nodes) {
			return fmt.Errorf("engine %d: there are %d", n, len(c.Nodes))
		}
	}
	switch {
	case e.At < 0 || e.Length < 0:
		return fmt.Errorf("a time is negative")
	case e.Kind > Blind:
		return fmt.Errorf("kind %d: unknown", e.Kind)
	case e.Kind == Slow && !(e.Factor >= 0.01 && e.Factor <= 1000):
		return fmt.Errorf("factor %v: not within 0.01 and 1000", e.Factor)
	case e.Kind == Fail && !(e.Factor >= 0 && e.Factor <= 1):
		return fmt.Errorf("share %v: not within 0 and 1", e.Factor)
	}
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
