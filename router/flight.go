package router

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router/outlier"
)

// ID names a decision for operators. The zero ID names none.
type ID struct {
	epoch uint32
	n     uint64
}

// String returns the id as it is shown and searched for: "d-", then base 36.
func (id ID) String() string {
	b := make([]byte, 0, 24)
	b = append(b, "d-"...)
	b = strconv.AppendUint(b, uint64(id.epoch), 36)
	b = append(b, '-')
	return string(strconv.AppendUint(b, id.n, 36))
}

// ParseID reads an id as [ID.String] writes it, and nothing else.
func ParseID(s string) (ID, bool) {
	rest, ok := strings.CutPrefix(s, "d-")
	epoch, n, found := strings.Cut(rest, "-")
	if !ok || !found {
		return ID{}, false
	}
	e, errE := strconv.ParseUint(epoch, 36, 32)
	m, errN := strconv.ParseUint(n, 36, 64)
	id := ID{epoch: uint32(e), n: m}
	return id, errE == nil && errN == nil && id.String() == s
}

// Seq numbers the decisions of one router, from 1 on.
func (id ID) Seq() uint64 { return id.n }

// Flight is one routed request, from decision to end. It belongs to one goroutine; all methods may
// be called in any order and repeatedly, before routing and after the end too: what no longer
// applies changes nothing.
type Flight struct {
	Decision Decision
	ID       ID
	Picked   *fleet.Endpoint   // where the decision sent it; nil before routing
	Fallback []*fleet.Endpoint // further endpoints, in order of preference

	r      *Router
	req    *request.Request
	ref    fleet.Ref // instance the request is bound to now
	ticket fleet.Ticket
	obs    features.Observation
	first  time.Time
	last   time.Time
	tokens int
	open   bool
	start  outlier.Start
}

// Usage is what an answer said about itself; features.Unknown where it said nothing.
type Usage struct {
	Prompt, Cached, Output int
}

// Outcome is how a request ended.
type Outcome struct {
	Cause fleet.Cause
	Usage Usage
	// Blocks is the chain of the prompt continued by the answer, when the answer's text is known:
	// the endpoint holds all of it now. Nil: only the prompt is.
	Blocks []uint64
}

// Reset makes the flight ready for another request, keeping its memory. An open request is not
// ended by it; callers end it first.
func (f *Flight) Reset() {
	f.Decision.Reset()
	*f = Flight{Decision: f.Decision, Fallback: f.Fallback[:0]}
}

func (f *Flight) begin(r *Router, a *Ask, id ID, ref fleet.Ref, ticket fleet.Ticket) {
	d, q := &f.Decision, &r.q
	s := &q.Snap.States[d.Index]
	f.ID, f.Picked, f.r, f.req, f.ref, f.ticket, f.open = id, s.Endpoint, r, a.Req, ref, ticket, true
	f.first, f.last, f.tokens = time.Time{}, time.Time{}, 0
	f.Fallback = f.Fallback[:0]
	for _, i := range d.Fallback {
		f.Fallback = append(f.Fallback, q.Snap.States[i].Endpoint)
	}
	f.obs = features.Observation{
		At: a.Now, API: a.Req.API, Model: a.Req.Model, Adapter: a.Req.Adapter, Stream: a.Req.Stream,
		SLO: a.Req.SLO, Priority: a.Req.Priority,
		Endpoint: s.Name, Picked: s.Name, Policy: d.Policy, Arm: d.Arm,
		Session: r.session(a.Req.Session), Propensity: d.Propensity, Choice: d.Choice, State: s.Inflight, Load: *s.Load,
		HitBlocks: int(q.Hits[d.Index]), HitTokens: a.Req.CachedTokens(int(q.Hits[d.Index])), Blocks: len(a.Req.Blocks),
		MaxTokens: a.Req.MaxTokens, PromptTokens: a.Req.PromptTokens, ExactPrompt: a.Req.ExactTokens,
		CachedTokens: features.Unknown, OutputTokens: features.Unknown,
	}
	q.foretell(&f.obs, d.Index)
	if p := f.obs.Fore.TTFT.P50; !a.Req.Stream && p > 0 {
		f.ticket.Foresee(a.Now.Add(time.Duration(float64(p) * 1e9)))
	}
	d.Fore = f.obs.Fore
	f.obs.Load.RunningLoRA, f.obs.Load.WaitingLoRA = nil, nil
}

// session is how records name a session: by a hash that tells nobody else which one it is.
func (r *Router) session(id string) uint64 {
	if id == "" {
		return 0
	}
	var h xxhash.Digest
	h.ResetWithSeed(r.salt)
	_, _ = h.WriteString(id) // cannot fail
	return max(h.Sum64(), 1)
}

// Open reports whether the request was routed and has not ended.
func (f *Flight) Open() bool { return f.open }

// Served tells which endpoint the gateway really used; the work moves there. Unknown addresses
// (outside the fleet) change nothing and return false.
func (f *Flight) Served(addr netip.AddrPort) bool {
	if !f.open || !f.ticket.Move(addr, 0) {
		return false
	}
	ref, ok := f.ticket.Endpoint()
	if !ok || ref.Instance == f.ref.Instance { // its description may be another by now
		return ok
	}
	if p := f.r.opts.Prefixes; p != nil && len(f.req.Blocks) > 0 {
		p.Withdraw(f.ref, f.req.Blocks, f.obs.HitBlocks)
		p.Insert(ref, f.req.Blocks)
	}
	f.moved(ref)
	f.ref = ref
	f.obs.Endpoint = ref.Endpoint.Name
	return true
}

// Status tells the HTTP status of the answer.
func (f *Flight) Status(code int) {
	if f.open {
		f.obs.Status = code
	}
}

// Tokens tells that n tokens of the answer arrived at once; the first call marks the first token.
func (f *Flight) Tokens(now time.Time, n int) {
	if !f.open || n <= 0 {
		return
	}
	if f.tokens == 0 {
		f.first = now
		f.obs.TTFT = now.Sub(f.obs.At)
		if x := f.r.opts.Outliers; x != nil {
			x.First(now, f.ref, &f.start)
		}
		if o, ok := f.r.opts.Observer.(FirstObserver); ok {
			o.First(&f.obs)
		}
	}
	f.tokens += n
	f.last = now
	f.ticket.Tokens(now, n)
}

// First reports the time to the first token, or 0 while there is none.
func (f *Flight) First() time.Duration { return f.obs.TTFT }

// Finish ends the request: the ledger is released, the index corrected, the record observed. Only
// the first call counts.
func (f *Flight) Finish(now time.Time, out *Outcome) {
	if !f.open {
		return
	}
	f.open = false
	f.ticket.Done(now)
	o := &f.obs
	o.ID = f.ID.String()
	o.Cause, o.E2E = out.Cause, now.Sub(o.At)
	f.count(out)
	f.learn(out)
	if x := f.r.opts.Outliers; x != nil {
		x.Finish(now, f.ref, &f.start, &outlier.End{Cause: out.Cause, Status: o.Status, Tokens: f.tokens})
	}
	if f.r.opts.Observer != nil {
		f.r.opts.Observer.Observe(o)
	}
	if p, ok := f.r.Policy().(Observer); ok {
		p.Observe(o)
	}
}

// dispatched tells the detector of outliers that the request is on its way.
func (f *Flight) dispatched() {
	x := f.r.opts.Outliers
	if x == nil {
		return
	}
	d, q := &f.Decision, &f.r.q
	f.start = outlier.Start{
		At: f.obs.At, Stream: f.req.Stream, Probe: d.Index == f.r.try,
		Uncached: int64(q.UncachedTokens(d.Index)), Ahead: f.obs.State.Uncached,
	}
	x.Begin(f.ref, &f.start)
}

// moved tells it that the gateway chose another endpoint. When it did is not known to the
// nanosecond: no token has come yet, so the dispatch is as good an instant as any.
func (f *Flight) moved(to fleet.Ref) {
	if x := f.r.opts.Outliers; x != nil && f.tokens == 0 {
		x.Moved(f.start.At, f.ref, to, &f.start)
		f.start.Probe = false
	}
}

// count settles token counts and the mean gap. Reported figures win over counted events.
func (f *Flight) count(out *Outcome) {
	o, u := &f.obs, &out.Usage
	if u.Prompt > 0 {
		o.PromptTokens, o.ExactPrompt = u.Prompt, true
	}
	if u.Cached >= 0 {
		o.CachedTokens = u.Cached
	}
	switch {
	case u.Output >= 0:
		o.OutputTokens, o.ExactOutput = u.Output, true
	case f.tokens > 0:
		o.OutputTokens = f.tokens
	}
	perChoice := o.OutputTokens / max(f.req.Choices, 1)
	if f.tokens > 1 && perChoice > 1 {
		o.ITL = f.last.Sub(f.first) / time.Duration(perChoice-1)
	}
}

// learn feeds back what the end taught: prompt length per byte, and what the endpoint holds.
func (f *Flight) learn(out *Outcome) {
	if rt := f.r.opts.Ratios; rt != nil && out.Usage.Prompt > 0 && !f.req.ExactTokens {
		rt.Learn(f.req.Model, f.req.PromptBytes, out.Usage.Prompt)
	}
	p := f.r.opts.Prefixes
	if p == nil || len(f.req.Blocks) == 0 {
		return
	}
	switch {
	case f.tokens == 0 && out.Cause != fleet.Complete:
		p.Withdraw(f.ref, f.req.Blocks, f.obs.HitBlocks)
	case out.Cause == fleet.Complete:
		if bt := f.blockTokens(&out.Usage); out.Usage.Cached >= 0 && bt > 0 && f.obs.Endpoint == f.obs.Picked {
			held := int(float64(out.Usage.Cached)/bt + 0.5)
			p.Correct(f.ref, f.req.Blocks, held, f.obs.HitBlocks)
		}
		if len(out.Blocks) > len(f.req.Blocks) {
			p.Insert(f.ref, out.Blocks)
		}
	}
}

// blockTokens is the number of model tokens of one prefix block, from the prompt's reported length
// where that counts nothing but text.
func (f *Flight) blockTokens(u *Usage) float64 {
	bt := f.req.BlockTokens()
	if u.Prompt > 0 && f.req.PromptTokens > 0 && f.req.MediaUnits == 0 {
		bt *= float64(u.Prompt) / float64(f.req.PromptTokens)
	}
	return bt
}
