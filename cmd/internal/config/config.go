package config

import (
	"log/slog"
	"time"

	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/experiment"
)

// Config is a whole configuration. What [Load] returns has passed every check; lists and maps are
// owned by the caller.
type Config struct {
	Listen     Listen
	TLS        TLS
	Fleet      Fleet
	Request    Request
	Answer     Answer
	SLO        SLO
	Priorities map[string]int                // objective name -> priority; higher is more urgent
	Policy     string                        // a built-in policy or a profile below
	Profiles   map[string]router.ProfileSpec // weighted policies by name; fallbacks follow from Answer
	Experiment Experiment
	Shadow     []string // policies that decide beside, without effect
	Outliers   bool     // endpoints that fail or hang are kept out
	Models     Models
	Trace      Trace
	Drain      Drain
	Admin      Admin
	Log        Log
}

// Listen holds the listening addresses, host:port. Port 0 takes a free one; empty means not served.
type Listen struct {
	ExtProc string // ext_proc over gRPC; never empty
	Health  string // gRPC health and HTTP probes
	Admin   string // metrics, explanations, endpoints
}

// TLS says how the ext_proc listener is secured.
type TLS struct {
	Mode string // TLSOff, TLSSelfSigned or TLSFiles
	Cert string // PEM file, with TLSFiles
	Key  string // PEM file, with TLSFiles
}

// The modes of [TLS].
const (
	TLSOff        = "off"
	TLSSelfSigned = "self-signed"
	TLSFiles      = "files"
)

// Fleet says where the endpoints come from and how they are scraped.
type Fleet struct {
	File   string // endpoints file, resolved against the configuration file's folder; empty: DNS
	DNS    DNS
	Scrape Scrape
}

// DNS describes endpoints found by name: every address of Name is one endpoint on Port.
type DNS struct {
	Name   string // empty: File is used
	Port   int
	Model  string // of all endpoints; empty: any
	Engine string // vllm, sglang or trtllm; empty: recognised by its page
}

// Scrape says how metrics pages are read.
type Scrape struct {
	Interval time.Duration
	Timeout  time.Duration
}

// Request holds the limits and rules of incoming requests.
type Request struct {
	MaxBody          int64             // bytes of one body; larger ones are answered 413
	TotalBytes       int64             // bytes of all bodies held at once
	DecisionDeadline time.Duration     // from the end of the body to the answer
	UnknownModel     string            // UnknownRoute or Unknown404
	Rewrite          map[string]string // model name as asked -> as sent to the engine
}

// What happens to models that no endpoint serves.
const (
	UnknownRoute = "route"
	Unknown404   = "404"
)

// Answer says what the gateway is told.
type Answer struct {
	Endpoints       int  // addresses per answer, best first
	DecisionHeader  bool // tell clients the decision id
	ClearRouteCache bool // have the gateway choose its route anew
}

// SLO is what requests must meet when they name no SLO themselves; 0 means none.
type SLO struct{ TTFT, ITL time.Duration }

// Experiment compares policies on live traffic; see package experiment. Without arms there is none.
type Experiment struct {
	Arms       []Arm  // in the order of the file
	Control    string // one of the arms
	Unit       string // a name of experiment.Units
	Length     time.Duration
	Washout    time.Duration
	HoldBack   float64
	Seed       int
	Explore    map[string]float64 // share of decisions that explore, by arm
	Guardrails map[string]float64 // margin by metric; nil: the usual ones
}

// Arm is one policy of an experiment, by name, with its share.
type Arm struct {
	Policy string
	Share  float64
}

// Models says where learned models are kept. Without a directory none are read or written.
type Models struct {
	Dir string // resolved against the configuration file's folder
}

// Trace says where records of finished requests are kept, and how many. Without a directory none are.
type Trace struct {
	Dir    string        // resolved against the configuration file's folder
	Keep   time.Duration // age at which they go
	Budget int64         // bytes on disk
}

// Drain says how long open requests may run on after the service was told to stop.
type Drain struct{ Timeout time.Duration }

// Admin guards the admin listener.
type Admin struct {
	Token string
	Hosts []string // names it may be called by, beside localhost and addresses
}

// Log sets the least level that is logged.
type Log struct{ Level slog.Level }

// Default returns the configuration of an empty file. It lacks only a source of endpoints.
func Default() *Config {
	return &Config{
		Listen: Listen{ExtProc: ":9002", Health: ":9003", Admin: "127.0.0.1:9090"},
		TLS:    TLS{Mode: TLSOff},
		Fleet:  Fleet{Scrape: Scrape{Interval: 200 * time.Millisecond, Timeout: time.Second}},
		Request: Request{
			MaxBody: 64 << 20, TotalBytes: 512 << 20, DecisionDeadline: 5 * time.Second,
			UnknownModel: UnknownRoute,
		},
		Answer: Answer{Endpoints: 1},
		SLO:    SLO{TTFT: time.Second, ITL: 50 * time.Millisecond},
		Policy: "predictive",
		Experiment: Experiment{
			Unit: experiment.BySession.String(), Length: experiment.DefaultLength, Washout: experiment.DefaultWashout, Seed: 1,
		},
		Outliers: true,
		Trace:    Trace{Keep: 72 * time.Hour, Budget: 10 << 30},
		Drain:    Drain{Timeout: 30 * time.Second},
	}
}
