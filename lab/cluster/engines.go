package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/engine"
)

// submit hands a trip to an engine. The caller counted the engine among the trip's parties.
func (s *sim) submit(t *trip, which int) {
	if t.open {
		status := s.offer(t, which)
		if status == 0 {
			return
		}
		s.say(t, wordError, status, s.now)
	}
	s.cancel(t) // elsewhere
	s.drop(t)
}

// offer submits a trip to an engine and returns 0, or the HTTP status with which it is refused.
func (s *sim) offer(t *trip, which int) int32 {
	l, j := &t.legs[which], &t.job
	n := &s.nodes[l.node]
	n.requests++
	if n.fail > 0 && n.rng.Float64() < n.fail {
		return 500
	}
	r := engine.Request{
		ID: uint64(t.id)<<1 | uint64(which), PromptTokens: j.PromptTokens, OutputTokens: j.OutputTokens,
		Blocks: j.Blocks, Adapter: j.Adapter, Priority: int32(-j.Priority),
	}
	if t.legs[prefill].node >= 0 {
		if which == prefill {
			r.OutputTokens, r.Hold = 1, true
		} else {
			r.Remote = true
		}
	}
	h, err := n.Submit(s.now, &r)
	switch {
	case errors.Is(err, engine.ErrDead):
		return 503
	case err != nil:
		return 400
	}
	l.handle, l.active, t.arrived = h, true, s.now
	s.arm(l.node)
	return 0
}

// arm sets an engine's alarm.
func (s *sim) arm(node int) {
	due, ok := s.nodes[node].Next()
	if !ok {
		due = never
	}
	s.alarms.set(node, due)
}

// advance brings an engine to the present and passes on what happened. What that leads to may come
// back to the engine, which is at the present then.
func (s *sim) advance(node int) {
	n := &s.nodes[node]
	if n.telling {
		return
	}
	n.telling = true
	for _, ev := range n.Advance(s.now) {
		s.told(&ev)
	}
	n.telling = false
	s.arm(node)
}

// say sends word of a trip to the router.
func (s *sim) say(t *trip, kind wordKind, n int32, at time.Duration) {
	if s.cfg.Return == 0 {
		s.hear(t, kind, n)
		return
	}
	t.refs++
	s.feed.push(word{at: at + s.cfg.Return, trip: t, kind: kind, n: n})
}

// told takes in one event of an engine.
func (s *sim) told(ev *engine.Event) {
	s.rep.Events++
	t, which := s.trips[ev.ID>>1], int(ev.ID&1)
	l := &t.legs[which]
	switch ev.Kind {
	case engine.Scheduled:
		t.cached, t.queued = ev.N, ev.At-t.arrived
	case engine.Allocated:
		s.transfer(t, ev)
	case engine.FirstToken, engine.Progress:
		if which == decode {
			s.say(t, wordTokens, ev.N, ev.At)
		}
	case engine.Preempted:
		t.preempted++
	case engine.Finished:
		if which == prefill { // its blocks are held until they are transferred
			t.refs++
			s.submit(t, decode)
			return
		}
		l.active = false
		s.say(t, wordEnd, ev.N, ev.At)
		s.drop(t)
	case engine.Failed:
		l.active = false
		s.say(t, wordBroken, 0, ev.At)
		s.cancel(t)
		s.drop(t)
	}
}

// transfer begins to move a prompt's KV from its prefill engine to its decode engine.
func (s *sim) transfer(t *trip, ev *engine.Event) {
	from := &s.nodes[t.legs[prefill].node]
	bytes := float64(ev.N) * float64(from.kvBytes)
	start := max(ev.At, from.link)
	from.link = start + s.cfg.Transfer.Setup + time.Duration(bytes/s.cfg.Transfer.Rate*1e9)
	t.refs++
	s.agenda.push(item{at: from.link, task: taskDeliver, trip: t})
}

// deliver ends a transfer.
func (s *sim) deliver(t *trip) {
	p, d := &t.legs[prefill], &t.legs[decode]
	if d.active {
		s.advance(d.node)
		s.nodes[d.node].Deliver(s.now, d.handle)
		s.arm(d.node)
	}
	if p.active {
		p.active = false
		s.advance(p.node)
		s.nodes[p.node].Release(s.now, p.handle)
		s.arm(p.node)
		s.drop(t)
	}
}

// cancel drops a trip from the engines it is on.
func (s *sim) cancel(t *trip) {
	for i := range t.legs {
		l := &t.legs[i]
		if !l.active {
			continue
		}
		l.active = false
		s.advance(l.node)
		s.nodes[l.node].Cancel(s.now, l.handle)
		s.arm(l.node)
		s.drop(t)
	}
}

// happen does what an event says.
func (s *sim) happen(ev *Event) {
	for _, k := range ev.Nodes {
		n := &s.nodes[k]
		s.advance(k)
		switch ev.Kind {
		case Slow:
			s.note(n.SetSlowdown(min(max(n.cfg.Slowdown*ev.Factor, 0.01), 1000)))
		case Stall:
			n.Stall(s.now, ev.Length)
		case Kill:
			for _, e := range n.Kill(s.now) {
				s.told(&e)
			}
			n.dead = true
		case Revive:
			n.Revive(s.now)
			n.dead = false
		case Upgrade:
			s.upgrade(n, ev)
		case Fail:
			n.fail = ev.Factor
		case Blind:
			n.blind = true
			if ev.Length > 0 {
				s.agenda.push(item{at: s.now + ev.Length, task: taskSeeing, n: k})
			}
		}
		s.arm(k)
	}
}

func (s *sim) upgrade(n *node, ev *Event) {
	if ev.Profile.Name != "" {
		s.note(n.SetProfile(ev.Profile))
	}
	if ev.MaxSeqs > 0 || ev.MaxBatched > 0 {
		c := n.Config()
		seqs, batched := c.MaxSeqs, c.MaxBatched
		if ev.MaxSeqs > 0 {
			seqs = ev.MaxSeqs
		}
		if ev.MaxBatched > 0 {
			batched = ev.MaxBatched
		}
		s.note(n.SetLimits(seqs, max(batched, seqs)))
	}
}

// note keeps the first error of a run, for its end: an event that an engine refused, an impossible job.
func (s *sim) note(err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("at %v: %w", s.now, err)
	}
}

// scrape has every engine write its metrics page.
func (s *sim) scrape() {
	if s.live == 0 && s.dry {
		return
	}
	pages := make([]fleet.Load, len(s.nodes))
	for i := range s.nodes {
		n := &s.nodes[i]
		s.advance(i)
		pages[i] = s.write(n)
	}
	s.pages = append(s.pages, pages)
	if s.cfg.ScrapeAge == 0 {
		s.page()
	} else {
		s.agenda.push(item{at: s.now + s.cfg.ScrapeAge, task: taskPage})
	}
	s.agenda.push(item{at: s.now + s.cfg.Scrape, task: taskScrape})
}

// known is what a page of vLLM carries.
const known = fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV | fleet.KnowBlocks | fleet.KnowPrefix | fleet.KnowTokens | fleet.KnowPreemptions

// write is an engine's page. A dead engine has none; a blind one repeats itself.
func (s *sim) write(n *node) fleet.Load {
	l := n.load
	if n.dead {
		l.Errors++
		l.Unreachable = true
		return l
	}
	l.Errors, l.Unreachable, l.Own = 0, false, n.open
	if n.blind {
		return l
	}
	var st engine.Stats
	n.Stats(&st)
	l.Known = known
	l.Waiting, l.Running = int32(st.Waiting), int32(st.Running)
	l.KVUsage, l.KVMax = float32(st.KVUsage), float32(st.KVUsage)
	l.Blocks, l.BlockSize = int32(st.Blocks), int32(st.BlockSize)
	l.Queries, l.Hits = float64(st.Queries), float64(st.Hits)
	l.Prompt, l.Generated, l.Preemptions = float64(st.PromptTokens), float64(st.GenerationTokens), float64(st.Preemptions)
	if slots := n.cfg.MaxLoRA; slots > 0 {
		l.Known |= fleet.KnowLoRA
		l.MaxLoRA = int32(slots)
		running, waiting := n.Adapters(nil, nil)
		l.RunningLoRA, l.WaitingLoRA = s.names(running), s.names(waiting)
	}
	return l
}

func (s *sim) names(adapters []int32) []string {
	var out []string
	for _, a := range adapters {
		if int(a) < len(s.adapters) {
			out = append(out, s.adapters[a])
		}
	}
	return out
}

// page has the router take in the oldest pages on their way.
func (s *sim) page() {
	pages := s.pages[0]
	s.pages = s.pages[1:]
	for i := range pages {
		l, n := &pages[i], &s.nodes[i]
		if l.Errors == 0 {
			l.At, l.ChangedAt = s.time(), s.time()
			if same(l, &n.load) {
				l.ChangedAt = n.load.ChangedAt
			}
			l.Restarts = n.load.Restarts
			if l.Prompt < n.load.Prompt || l.Generated < n.load.Generated {
				l.Restarts++
			}
		}
		n.load = *l
		s.fleet.SetLoad(n.ref, l)
		s.size(n)
	}
}

// same reports whether two pages say the same of everything that moves in a working engine.
func same(a, b *fleet.Load) bool {
	return !b.At.IsZero() && a.Waiting == b.Waiting && a.Running == b.Running && a.KVUsage == b.KVUsage &&
		a.Queries == b.Queries && a.Prompt == b.Prompt && a.Generated == b.Generated && a.Preemptions == b.Preemptions
}

// sized is a belief that follows the sizes of the engines' caches.
type sized interface {
	SetCapacity(r fleet.Ref, blocks int)
}

func (s *sim) size(n *node) {
	if x, ok := s.prefixes.(sized); ok {
		if c := int(n.load.KVTokens()) / s.cfg.PrefixBlock; c != n.capacity {
			n.capacity = c
			x.SetCapacity(n.ref, c)
		}
	}
}
