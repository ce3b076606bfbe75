package cluster

import (
	"fmt"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

// ask has the router decide.
func (s *sim) ask(t *trip) {
	j := &t.job
	s.rep.Requests++
	t.number = s.number
	s.number++
	t.cached, t.tokens, t.preempted, t.queued, t.believed = -1, 0, 0, 0, 0
	t.legs = [2]leg{{node: -1}, {node: -1}}
	if t.chain = t.chain[:0]; !s.cfg.NoPrefixes {
		t.chain = coarse(t.chain, j.Blocks, s.cfg.PrefixBlock, j.PromptTokens)
	}
	t.req = request.Request{
		API: request.Chat, Path: "/v1/chat/completions", Model: j.Model, Stream: true, MaxTokens: j.MaxTokens, Choices: 1,
		PromptBytes: 4 * j.PromptTokens, PromptTokens: j.PromptTokens, ExactTokens: true,
		Blocks: t.chain, BlockSize: 4 * s.cfg.PrefixBlock,
		Session: j.Session, Priority: j.Priority, Tenant: j.Tenant, SLO: j.SLO,
	}
	switch {
	case j.Adapter < 0 || int(j.Adapter) >= len(s.adapters):
		s.note(fmt.Errorf("job with adapter %d: the run has %d", j.Adapter, s.cfg.Adapters))
		j.Adapter = 0
	case j.Adapter > 0:
		t.req.Model = s.adapters[j.Adapter]
		t.req.Adapter = t.req.Model
	}
	f := s.deal()
	s.see(f, j)
	if f.pupil != nil {
		f.pupil.publish(s.now)
	}
	t.open, t.front = true, f
	if err := f.router.Route(&router.Ask{Now: s.time(), Req: &t.req}, &t.flight); err != nil {
		s.close(t, fleet.UpstreamError, s.now+s.cfg.Uplink)
		return
	}
	d := &t.flight.Decision
	t.legs[decode].node = d.Index
	t.believed = s.believed
	f.views[d.Index].open++
	if j.Timeout > 0 {
		s.agenda.push(item{at: t.sent + j.Timeout + s.cfg.Uplink, task: taskLeave, trip: t, gen: t.gen})
	}
	first := decode
	if d.Prefill >= 0 && d.Prefill < len(s.nodes) && d.Prefill != d.Index {
		t.legs[prefill].node = d.Prefill
		first = prefill
	}
	t.refs++
	if s.cfg.Dispatch == 0 {
		s.submit(t, first)
		return
	}
	s.agenda.push(item{at: s.now + s.cfg.Dispatch, task: taskSubmit, trip: t, n: first})
}

// Record notes what the router believed of the engine it picked, and passes the decision on.
func (s *sim) Record(id router.ID, q *router.Query, d *router.Decision) {
	s.believed = q.Req.CachedTokens(int(q.Hits[d.Index]))
	if r := s.cfg.Recorder; r != nil {
		r.Record(id, q, d)
	}
}

// hear has the router learn what an engine said.
func (s *sim) hear(t *trip, kind wordKind, n int32) {
	if !t.open {
		return
	}
	switch kind {
	case wordTokens:
		s.tokens(t, n)
		if after := t.job.CancelAfter; after > 0 && int(n) >= after {
			t.job.CancelAfter = 0
			s.agenda.push(item{at: s.now + 2*s.cfg.Uplink, task: taskLeave, trip: t, gen: t.gen})
		}
	case wordEnd:
		s.tokens(t, n)
		t.flight.Status(200)
		out := outcome(fleet.Complete)
		out.Usage.Prompt, out.Usage.Cached, out.Usage.Output = t.job.PromptTokens, int(t.cached), t.job.OutputTokens
		if !s.cfg.NoPrefixes {
			t.all = coarse(append(t.all[:0], t.chain...), t.job.Blocks, s.cfg.PrefixBlock, t.job.PromptTokens+t.job.OutputTokens)
			out.Blocks = t.all
		}
		s.finish(t, &out)
	case wordBroken:
		out := outcome(fleet.Truncated)
		if t.tokens == 0 {
			out.Cause = fleet.UpstreamError
		}
		s.finish(t, &out)
	case wordError:
		t.flight.Status(int(n))
		out := outcome(fleet.UpstreamError)
		s.finish(t, &out)
	}
}

// finish ends a trip at the router.
func (s *sim) finish(t *trip, out *router.Outcome) {
	t.flight.Finish(s.time(), out)
	s.close(t, out.Cause, s.now+s.cfg.Uplink)
}

// tokens tells the router that n tokens have come in all.
func (s *sim) tokens(t *trip, n int32) {
	if n <= t.tokens {
		return
	}
	if t.tokens == 0 {
		t.first = s.now
	}
	t.last = s.now
	t.flight.Tokens(s.time(), int(n-t.tokens))
	t.tokens = n
}

// leave has the router learn that the client left; the engine learns it a little later.
func (s *sim) leave(t *trip) {
	out := outcome(fleet.ClientGone)
	t.flight.Finish(s.time(), &out)
	t.refs++
	s.agenda.push(item{at: s.now + s.cfg.Dispatch, task: taskCancel, trip: t})
	s.close(t, fleet.ClientGone, s.now-s.cfg.Uplink)
}

// backoff is the least time after which a client follows up a request that failed.
const backoff = 100 * time.Millisecond

// close ends a trip for its client, at the given time there, and sends the client's next request.
func (s *sim) close(t *trip, cause fleet.Cause, at time.Duration) {
	t.open = false
	s.live--
	if n := t.legs[decode].node; n >= 0 {
		t.front.views[n].open--
	}
	s.record(t, cause, at)
	if then := t.job.Then; then != nil {
		u := s.take()
		if then.Next(&u.job) {
			if u.job.Then == nil {
				u.job.Then = then
			}
			pause := max(u.job.At, 0)
			if cause != fleet.Complete && cause != fleet.ClientGone {
				pause = max(pause, backoff)
			}
			if !s.over(at + pause) {
				s.send(u, at+pause, 0)
				u = nil
			}
		}
		if u != nil {
			u.job = Job{}
			s.unused = append(s.unused, u)
		}
	}
	s.drop(t)
}

// record tells what became of a trip.
func (s *sim) record(t *trip, cause fleet.Cause, at time.Duration) {
	j, d, r := &t.job, &t.flight.Decision, &s.rec
	*r = Record{
		Number: t.number, Sent: t.sent, Class: j.Class, Session: j.Session, Tenant: j.Tenant, Adapter: j.Adapter,
		Priority: j.Priority, SLO: j.SLO, Node: t.legs[decode].node, Prefill: t.legs[prefill].node,
		Policy: d.Policy, Arm: d.Arm, Propensity: d.Propensity,
		PromptTokens: j.PromptTokens, OutputTokens: int(t.tokens), Blocks: j.Blocks, CachedTokens: int(t.cached), Preemptions: t.preempted,
		Queue: t.queued, E2E: at - t.sent, Cause: cause,
	}
	if r.Node >= 0 {
		r.BelievedTokens = t.believed
	}
	if t.tokens > 0 {
		r.TTFT = t.first + s.cfg.Uplink - t.sent
	}
	if t.tokens > 1 {
		r.ITL = (t.last - t.first) / time.Duration(t.tokens-1)
	}
	r.Met = r.met()
	switch {
	case cause == fleet.Complete:
		s.rep.Complete++
	case cause == fleet.ClientGone:
		s.rep.Left++
	case r.Node < 0:
		s.rep.Refused++
	default:
		s.rep.Failed++
	}
	if r.Met {
		s.rep.Met++
	}
	if s.sink != nil {
		s.sink(r)
	}
}

var _ router.Recorder = (*sim)(nil)
