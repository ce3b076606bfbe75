package workload

import (
	"fmt"
	"time"

	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
)

// Scenario is one experiment: engines, traffic, events, and what they should show.
type Scenario struct {
	Name    string
	About   string // one line
	Expects string // what happens, and why
	Origin  string // where the parameters come from

	Duration time.Duration // of the arrivals; sessions and users that are open then still end their request
	Warmup   time.Duration // requests that arrive before are not counted
	Loads    []float64     // multiples of the arrival rate that a sweep runs, rising

	Fleet   []Engines
	Traffic []Traffic
	Events  []cluster.Event // by time; their nodes count the engines of the fleet in its order, from 0
}

// Engines are equal engines of the fleet.
type Engines struct {
	Count int
	GPU   string
	Model string
	TP    int    // 0: the narrowest there is
	DType string // of the weights; empty: bfloat16 before others

	Profile    string  // overheads: async or sync; empty: async
	MaxSeqs    int     // 0: vLLM's default for the GPU
	MaxBatched int     // 0: vLLM's default for the GPU
	Blocks     int     // KV blocks; 0: as many as fit
	MaxLoRA    int     // adapter slots; 0: adapters cost nothing
	Slowdown   float64 // factor on every step; 0: none
}

// Config is the configuration of one of the engines.
func (e *Engines) Config(table engine.Table) (engine.Config, error) {
	coefs, err := table.Find(e.GPU, e.Model, e.TP, e.DType)
	if err != nil {
		return engine.Config{}, err
	}
	profile, err := engine.ParseProfile(e.Profile)
	if err != nil {
		return engine.Config{}, err
	}
	return engine.Config{
		Coefs: *coefs, Profile: profile, MaxSeqs: e.MaxSeqs, MaxBatched: e.MaxBatched,
		Blocks: e.Blocks, MaxLoRA: e.MaxLoRA, Slowdown: e.Slowdown,
	}, nil
}

// Cluster is the part of a run's configuration that the scenario gives: engines, events, duration and
// adapters. Policy, seed and delays are the caller's.
func (s *Scenario) Cluster(table engine.Table) (cluster.Config, error) {
	cfg := cluster.Config{Events: s.Events, Duration: s.Duration}
	for i := range s.Fleet {
		e, err := s.Fleet[i].Config(table)
		if err != nil {
			return cluster.Config{}, fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		for range s.Fleet[i].Count {
			cfg.Nodes = append(cfg.Nodes, cluster.Node{Engine: e})
		}
	}
	for i := range s.Traffic {
		cfg.Adapters = max(cfg.Adapters, s.Traffic[i].Adapters)
	}
	return cfg, nil
}

// Endpoints is the number of engines of the fleet.
func (s *Scenario) Endpoints() int {
	n := 0
	for _, e := range s.Fleet {
		n += e.Count
	}
	return n
}

// Traffic is one class of requests. Its requests come from Arrivals or from a Trace; with a Session
// every arrival is the first request of a conversation.
type Traffic struct {
	Class       string
	Model       string        // as the client names it; empty: whatever the endpoint serves
	From, Until time.Duration // when it is there; Until 0: to the end

	Arrivals []Arrivals // superposed
	Prompt   Dist       // tokens after the shared prefix
	Output   Dist       // tokens
	Prefix   []Prefix   // shared beginnings, the outermost first
	Users    int        // users of each innermost prefix, each with a session id of its own; 0: no session ids
	Session  *Session
	Trace    *Trace

	Adapters     int // LoRA adapters 1..n; 0: none
	AdapterPick  Pick
	SLO          request.SLO
	Priority     int
	MaxTokens    int           // cap that clients send; 0: none
	Timeout      time.Duration // clients leave without an end by then; 0: never
	CancelShare  float64       // share of requests whose client leaves in mid-answer
	CancelTokens Dist          // after how many tokens
}

// Prefix is a level of shared prompt beginnings: each group has a text of its own, within the group
// of the level before.
type Prefix struct {
	Groups int
	Tokens Dist // drawn once for each group
	Pick   Pick
	// Renew replaces the texts of all groups at this interval, as when a new system prompt is rolled
	// out; 0: never.
	Renew   time.Duration
	Tenants bool   // the groups are tenants
	Text    string // classes whose levels have the same name here have the same texts; empty: texts of its own
}

// Session makes every arrival the beginning of a conversation: the next request repeats all that was
// said, answers included, and is sent when the answer has come and the user has thought about it.
type Session struct {
	Turns Dist // requests of a conversation
	Think Dist // seconds from the end of an answer to the next request
	Next  Dist // prompt tokens that each later request adds
	Limit int  // tokens of context at which a conversation ends; 0: none
}
