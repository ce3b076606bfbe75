package cluster

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// Seer is a policy that is shown, before each decision, what no router can know: the request with
// its true length, and the engines themselves, which it must not change. Oracles are made of it.
type Seer interface {
	See(now time.Duration, job *Job, engines []*engine.Engine)
}

// Run replays the source's jobs on the cluster and returns what became of the whole. Each request's
// record goes to sink when its client is done with it; the record is reused. Equal configurations
// and sources give equal records, in equal order.
func Run(cfg Config, src Source, sink func(*Record)) (*Report, error) {
	s, err := newSim(cfg, src, sink)
	if err != nil {
		return nil, err
	}
	s.run()
	return s.report(), s.err
}

// sim is one run.
type sim struct {
	cfg      Config
	src      Source
	sink     func(*Record)
	fronts   []*front   // routers
	dealer   *rand.Rand // of requests to them
	nodes    []node
	engines  []*engine.Engine
	adapters []string // names, by number; 0 is none

	agenda agenda
	alarms alarms
	feed   feed
	pages  [][]fleet.Load // written by engines, on their way to the router
	trips  []*trip
	unused []*trip
	start  time.Time
	now    time.Duration
	live   int // trips that are not over
	dry    bool

	believed int // of the last decision
	number   uint64
	rec      Record
	rep      Report
	err      error
}

// epoch is the instant that a run begins, on the router's clock.
func epoch() time.Time { return time.Unix(1_700_000_000, 0).UTC() }

func newSim(cfg Config, src Source, sink func(*Record)) (*sim, error) {
	cfg.defaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &sim{cfg: cfg, src: src, sink: sink, start: epoch(), nodes: make([]node, len(cfg.Nodes)), alarms: newAlarms(len(cfg.Nodes))}
	s.adapters = make([]string, 1, cfg.Adapters+1)
	for i := range cfg.Adapters {
		s.adapters = append(s.adapters, fmt.Sprintf("adapter-%d", i+1))
	}
	endpoints := make([]*fleet.Endpoint, len(cfg.Nodes))
	blocks := 0
	for i := range cfg.Nodes {
		e, err := s.addNode(i)
		if err != nil {
			return nil, fmt.Errorf("engine %d: %w", i, err)
		}
		endpoints[i] = e
		blocks += s.nodes[i].cfg.Blocks * blockTokens / cfg.PrefixBlock
	}
	s.dealer = rand.New(rand.NewPCG(seedOf(cfg.Seed, "deal", 0), 0))
	first := Peer{Policy: cfg.Policy, Prefixes: cfg.Prefixes, Learner: cfg.Learner, Outliers: cfg.Outliers}
	for k, p := range append([]Peer{first}, cfg.Peers...) {
		f, err := s.newFront(k, &p, endpoints, blocks)
		if err != nil {
			return nil, err
		}
		s.fronts = append(s.fronts, f)
	}
	return s, nil
}

// run does what is due, in order of time: engines first, then what they said, then the agenda.
func (s *sim) run() {
	for i := range s.cfg.Events {
		s.agenda.push(item{at: s.cfg.Events[i].At, task: taskEvent, n: i})
	}
	if s.cfg.Scrape > 0 {
		s.agenda.push(item{at: 0, task: taskScrape})
	}
	s.draw()
	for s.live > 0 || !s.dry {
		if !s.step() {
			return
		}
	}
}

// step does the next thing. It returns false when nothing will ever happen again.
func (s *sim) step() bool {
	due, top, heard := s.alarms.heap[0].due, never, never
	if len(s.agenda.items) > 0 {
		top = s.agenda.items[0].at
	}
	if w := s.feed.next(); w != nil {
		heard = w.at
	}
	switch min(due, top, heard) {
	case never:
		return false
	case due:
		s.now = max(s.now, due)
		s.advance(int(s.alarms.heap[0].node))
	case heard:
		s.now = max(s.now, heard)
		w := s.feed.pop()
		s.hear(w.trip, w.kind, w.n)
		s.drop(w.trip)
	default:
		it := s.agenda.pop()
		s.now = max(s.now, it.at)
		s.rep.Events++
		s.do(&it)
	}
	return true
}

func (s *sim) do(it *item) {
	t := it.trip
	switch it.task {
	case taskAsk:
		s.ask(t)
		if it.n == fromSource {
			s.draw()
		}
	case taskSubmit:
		s.submit(t, it.n)
	case taskLeave:
		if t.gen == it.gen && t.open {
			s.leave(t)
		}
	case taskCancel:
		s.cancel(t)
		s.drop(t)
	case taskDeliver:
		s.deliver(t)
		s.drop(t)
	case taskScrape:
		s.scrape()
	case taskPage:
		s.page()
	case taskEvent:
		s.happen(&s.cfg.Events[it.n])
	case taskSeeing:
		s.nodes[it.n].blind = false
	}
}

// fromSource marks the request after whose decision the next job is drawn.
const fromSource = 1

// draw plans the next job of the source.
func (s *sim) draw() {
	t := s.take()
	if s.src.Next(&t.job) && !s.over(t.job.At) {
		s.send(t, max(t.job.At, 0), fromSource)
		return
	}
	s.dry = true
	t.job = Job{}
	s.unused = append(s.unused, t)
}

// over reports whether nothing is sent any more.
func (s *sim) over(at time.Duration) bool { return s.cfg.Duration > 0 && at >= s.cfg.Duration }

// send plans a client's request.
func (s *sim) send(t *trip, at time.Duration, from int) {
	s.live++
	t.refs, t.sent = 1, at
	s.agenda.push(item{at: at + s.cfg.Uplink, task: taskAsk, trip: t, n: from})
}

func (s *sim) time() time.Time { return s.start.Add(s.now) }

// outcome is how the router tells itself that a request ended.
func outcome(c fleet.Cause) router.Outcome {
	return router.Outcome{Cause: c, Usage: router.Usage{Prompt: features.Unknown, Cached: features.Unknown, Output: features.Unknown}}
}

func (s *sim) report() *Report {
	r := &s.rep
	for _, f := range s.fronts {
		r.Fallbacks += f.router.Fallbacks.Load()
	}
	r.End = s.now
	for i := range s.nodes {
		n := &s.nodes[i]
		s.advance(i)
		t := Totals{Name: n.name, Requests: n.requests}
		n.Stats(&t.Stats)
		r.Steps += t.Steps
		r.Nodes = append(r.Nodes, t)
	}
	r.Events += r.Steps
	return r
}

// seedOf derives independent seeds from one.
func seedOf(seed uint64, what string, n int) uint64 {
	h := seed ^ 0x9e3779b97f4a7c15
	for _, c := range []byte(what) {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	h ^= uint64(n) * 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}
