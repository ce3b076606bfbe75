package admin

import (
	"math"
	"net/http"
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Endpoint is one endpoint as the page shows it. What its metrics page did not say is absent.
type Endpoint struct {
	Name     string            `json:"name"`
	Address  string            `json:"address"`
	Model    string            `json:"model,omitempty"`
	Engine   string            `json:"engine,omitempty"`
	GPU      string            `json:"gpu,omitempty"`
	TP       int               `json:"tp,omitempty"`
	Role     string            `json:"role"`
	State    string            `json:"state"` // ready, warming (never scraped), stale, draining, ejected
	Adapters []string          `json:"adapters,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Since    time.Time         `json:"since"`
	Load     *Load             `json:"load,omitempty"` // absent: never scraped
	Ledger   Ledger            `json:"ledger"`
	Outlier  *Outlier          `json:"outlier,omitempty"` // absent: not watched
}

// Load is what the engine said about itself.
type Load struct {
	Age         int64    `json:"age_ms"`
	Failures    uint32   `json:"failed_scrapes"` // in a row, since then
	Waiting     *int32   `json:"waiting,omitempty"`
	Running     *int32   `json:"running,omitempty"`
	KV          *float64 `json:"kv_usage,omitempty"`
	KVMax       *float64 `json:"kv_usage_max,omitempty"` // of the fullest rank
	KVTokens    *int64   `json:"kv_tokens,omitempty"`
	MaxLoRA     *int32   `json:"max_lora,omitempty"`
	RunningLoRA []string `json:"running_lora,omitempty"`
	WaitingLoRA []string `json:"waiting_lora,omitempty"`
	Preemptions *float64 `json:"preemptions,omitempty"`
}

// Ledger is the router's own account of an endpoint.
type Ledger struct {
	Requests  int32  `json:"requests"`
	Pending   int32  `json:"pending"`
	Streaming int32  `json:"streaming"`
	Uncached  int64  `json:"uncached_tokens"`
	Context   int64  `json:"context_tokens"`
	Oldest    int64  `json:"oldest_pending_ms,omitempty"`
	Begun     uint64 `json:"begun"` // requests ever
}

// endpoints answers with the fleet as it is, and with those that have left but not yet ended all.
func (p *pages) endpoints(w http.ResponseWriter, _ *http.Request) {
	now := p.Now()
	var snap fleet.Snapshot
	p.Router.Fleet().Snapshot(now, &snap)
	trust := trustOf(p.Router.Outliers())
	answerJSON(w, http.StatusOK, struct {
		At         time.Time  `json:"at"`
		Generation uint64     `json:"generation"`
		Endpoints  []Endpoint `json:"endpoints"`
		Leaving    []Endpoint `json:"leaving"`
	}{now, snap.Gen, describe(snap.States, trust, now), describe(p.Router.Fleet().Leaving(nil), nil, now)})
}

func describe(states []fleet.State, t trust, now time.Time) []Endpoint {
	out := make([]Endpoint, 0, len(states))
	for i := range states {
		s := &states[i]
		e := Endpoint{
			Name: s.Name, Address: s.Addr.String(), Model: s.Model, Engine: s.Engine, GPU: s.GPU, TP: s.TP, Role: s.Role.String(),
			State: t.state(s, now), Adapters: s.Adapters, Labels: s.Labels, Since: s.Since, Load: describeLoad(s.Load, now),
			Ledger: Ledger{Requests: s.Requests, Pending: s.Pending, Streaming: s.Streaming, Uncached: s.Uncached, Context: s.Context, Begun: s.Begun},
		}
		e.Outlier = t.page(s)
		if !s.OldestPending.IsZero() {
			e.Ledger.Oldest = now.Sub(s.OldestPending).Milliseconds()
		}
		out = append(out, e)
	}
	return out
}

func describeLoad(l *fleet.Load, now time.Time) *Load {
	if l.At.IsZero() {
		return nil
	}
	out := &Load{Age: now.Sub(l.At).Milliseconds(), Failures: l.Errors}
	if l.Known.Has(fleet.KnowWaiting) {
		out.Waiting = &l.Waiting
	}
	if l.Known.Has(fleet.KnowRunning) {
		out.Running = &l.Running
	}
	if l.Known.Has(fleet.KnowKV) {
		out.KV, out.KVMax = finite(float64(l.KVUsage)), finite(float64(l.KVMax))
	}
	if n := l.KVTokens(); n > 0 {
		out.KVTokens = &n
	}
	if l.Known.Has(fleet.KnowLoRA) {
		out.MaxLoRA, out.RunningLoRA, out.WaitingLoRA = &l.MaxLoRA, l.RunningLoRA, l.WaitingLoRA
	}
	if l.Known.Has(fleet.KnowPreemptions) {
		out.Preemptions = finite(l.Preemptions)
	}
	return out
}

// finite returns a value that JSON can say, or nil.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
