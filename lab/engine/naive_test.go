package engine

import (
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naive is the same engine written as plainly as possible: one loop over requests per step, one
// object per block. It is the oracle for the scheduler, the KV cache and the step times.
type naive struct {
	cfg     Config
	pace    *pace
	clock   int64 // ps
	inbox   []*job
	waiting []*job
	running []*job
	fresh   int
	lru     []*page          // cached, held by nobody, next victim first
	index   map[uint64]*page // cached blocks by hash
	log     []Event
	cached  []KVEvent
}

type job struct {
	Request
	arrival  int64 // ps
	computed int
	tokens   int
	pages    []*page
	seen     bool
	q        int // tokens in this step
	decoding bool
}

type page struct {
	hash   uint64
	cached bool
	refs   int
}

func (n *naive) ns(ps int64) time.Duration { return time.Duration((ps + 999) / 1000) }

func (n *naive) tell(k Kind, j *job, v int) {
	n.log = append(n.log, Event{At: n.ns(n.clock), ID: j.ID, N: int32(v), Kind: k})
}

// want makes the request's table long enough, or returns false.
func (n *naive) want(j *job, tokens int) bool {
	need := ceil(tokens, n.cfg.BlockSize) - len(j.pages)
	if need > n.fresh+len(n.lru) {
		return false
	}
	for range need {
		j.pages = append(j.pages, n.page())
	}
	return true
}

func (n *naive) page() *page {
	if n.fresh > 0 {
		n.fresh--
		return &page{refs: 1}
	}
	p := n.lru[0]
	n.lru = n.lru[1:]
	delete(n.index, p.hash)
	n.cached = append(n.cached, KVEvent{At: n.ns(n.clock), Kind: Removed, Hashes: []uint64{p.hash}})
	return &page{refs: 1}
}

// publish caches the request's full blocks; a copy of a cached block is dropped for it.
func (n *naive) publish(j *job, tokens int) {
	for i := range min(tokens/n.cfg.BlockSize, len(j.Blocks)) {
		p, h := j.pages[i], j.Blocks[i]
		if p.cached {
			continue
		}
		n.cached = append(n.cached, KVEvent{At: n.ns(n.clock), Kind: Stored, ID: j.ID, First: i, Hashes: []uint64{h}})
		if q := n.index[h]; q != nil {
			n.hold(q)
			j.pages[i] = q
			n.fresh++
			continue
		}
		p.hash, p.cached = h, true
		n.index[h] = p
	}
}

func (n *naive) hold(p *page) {
	if p.refs == 0 {
		n.lru = slices.DeleteFunc(n.lru, func(q *page) bool { return q == p })
	}
	p.refs++
}

func (n *naive) release(j *job) {
	for _, p := range slices.Backward(j.pages) {
		if p.refs--; p.refs > 0 {
			continue
		}
		if p.cached {
			n.lru = append(n.lru, p)
		} else {
			n.fresh++
		}
	}
	j.pages = nil
}

func (j *job) before(o *job) bool {
	if j.Priority != o.Priority {
		return j.Priority < o.Priority
	}
	if j.arrival != o.arrival {
		return j.arrival < o.arrival
	}
	return j.ID < o.ID
}

func (n *naive) preempt(j *job) {
	n.running = slices.DeleteFunc(n.running, func(o *job) bool { return o == j })
	n.release(j)
	j.computed, j.q, j.decoding = 0, 0, false
	n.tell(Preempted, j, j.tokens)
	n.waiting = slices.Insert(n.waiting, 0, j)
	if n.cfg.PriorityScheduling {
		sort.SliceStable(n.waiting, func(a, b int) bool { return n.waiting[a].before(n.waiting[b]) })
	}
}

// schedule fills in q of the requests of the next step, and reports whether there are any.
func (n *naive) schedule(cutoff int64) bool {
	for len(n.inbox) > 0 && n.inbox[0].arrival <= cutoff {
		n.waiting = append(n.waiting, n.inbox[0])
		n.inbox = n.inbox[1:]
	}
	if n.cfg.PriorityScheduling {
		sort.SliceStable(n.waiting, func(a, b int) bool { return n.waiting[a].before(n.waiting[b]) })
	}
	budget, preempted := n.cfg.MaxBatched, false
	for _, j := range n.running {
		j.q = 0
	}
	share := func(rest int) int {
		if t := n.cfg.LongPrefill; t > 0 && len(n.running)+len(n.waiting) > 1 {
			rest = min(rest, t)
		}
		return min(rest, budget)
	}
	for i := 0; i < len(n.running) && budget > 0; i++ {
		j := n.running[i]
		q := share(j.PromptTokens + j.tokens - j.computed)
		gone := false
		for !n.want(j, j.computed+q) {
			preempted = true
			v := n.running[len(n.running)-1]
			if n.cfg.PriorityScheduling {
				for _, o := range n.running {
					if v.before(o) {
						v = o
					}
				}
			}
			at := slices.Index(n.running, v)
			budget += v.q
			n.preempt(v)
			if v == j {
				gone = true
				break
			}
			if at < i {
				i--
			}
		}
		if gone {
			break
		}
		j.q = q
		budget -= q
		if !j.decoding {
			n.publish(j, j.computed+q)
		}
	}
	for _, j := range n.running {
		if j.decoding {
			n.publish(j, j.computed+j.q)
		}
	}
	for !preempted && len(n.waiting) > 0 && budget > 0 && len(n.running) < n.cfg.MaxSeqs {
		j := n.waiting[0]
		total := j.PromptTokens + j.tokens
		var hit []*page
		idle := 0
		for i := range min((total-1)/n.cfg.BlockSize, len(j.Blocks)) {
			p := n.index[j.Blocks[i]]
			if p == nil {
				break
			}
			if p.refs == 0 {
				idle++
			}
			hit = append(hit, p)
		}
		need := ceil(total, n.cfg.BlockSize) - len(hit) + idle
		if len(n.running) > 0 {
			need += int(n.cfg.Watermark * float64(n.cfg.Blocks))
		}
		if need > n.fresh+len(n.lru) {
			break
		}
		for _, p := range hit {
			n.hold(p)
			j.pages = append(j.pages, p)
		}
		j.computed = len(hit) * n.cfg.BlockSize
		if !j.seen {
			j.seen = true
			n.tell(Scheduled, j, j.computed)
		}
		j.q = share(total - j.computed)
		n.waiting = n.waiting[1:]
		n.running = append(n.running, j)
		n.want(j, j.computed+j.q)
		budget -= j.q
		n.publish(j, j.computed+j.q)
	}
	busy := slices.ContainsFunc(n.running, func(j *job) bool { return j.q > 0 })
	if !busy && preempted {
		return n.schedule(cutoff)
	}
	return busy
}

// step runs one step and tells what it yields.
func (n *naive) step() {
	b, context := batch{}, 0
	for _, j := range n.running {
		switch {
		case j.q == 0:
		case j.decoding:
			b.seqs++
			b.tokens++
			b.decodes++
			context += j.computed
		default:
			b.seqs++
			b.add(j.q, j.computed)
		}
	}
	n.clock += n.pace.fixed(&b) + n.pace.decodeKV*int64(context)
	var done []*job
	for _, j := range n.running {
		j.computed += j.q
		if j.q == 0 || j.computed < j.PromptTokens+j.tokens {
			continue
		}
		j.tokens++
		j.decoding = true
		switch p := n.cfg.Progress; {
		case j.tokens == 1:
			n.tell(FirstToken, j, 1)
		case p > 0 && (j.tokens-1)%p == 0 && j.tokens < j.OutputTokens:
			n.tell(Progress, j, j.tokens)
		}
		if j.tokens == j.OutputTokens {
			done = append(done, j)
		}
	}
	for _, j := range done {
		n.tell(Finished, j, j.tokens)
		n.running = slices.DeleteFunc(n.running, func(o *job) bool { return o == j })
		n.release(j)
	}
}

func (n *naive) run() {
	for len(n.inbox)+len(n.waiting)+len(n.running) > 0 {
		if len(n.running) == 0 && len(n.waiting) == 0 {
			n.clock = max(n.clock, n.inbox[0].arrival)
		}
		if !n.schedule(n.clock) {
			continue
		}
		for busy := true; busy; {
			start := n.clock
			n.step()
			cutoff := n.clock
			if n.cfg.Profile.Lag > 0 {
				cutoff = start
			}
			busy = n.schedule(cutoff)
			if !busy {
				busy = n.schedule(n.clock)
			}
		}
	}
}

// byTime orders events of one instant by request, since the order among requests within a step is
// no promise.
func byTime(events []Event) []Event {
	sort.SliceStable(events, func(a, b int) bool {
		x, y := &events[a], &events[b]
		return x.At < y.At || x.At == y.At && x.ID < y.ID
	})
	return events
}

// singles cuts KV events into single blocks, evictions of a run from its end as they happen.
func singles(events []KVEvent) []KVEvent {
	var out []KVEvent
	for _, ev := range events {
		for k := range ev.Hashes {
			i := k
			if ev.Kind == Removed {
				i = len(ev.Hashes) - 1 - k
			}
			out = append(out, KVEvent{At: ev.At, Kind: ev.Kind, ID: ev.ID, First: ev.First + k*int(1-ev.Kind), Hashes: []uint64{ev.Hashes[i]}})
		}
	}
	return out
}

// split separates stored from removed blocks; stored ones of one instant are ordered by request.
func split(events []KVEvent) (stored, removed []KVEvent) {
	for _, ev := range events {
		if ev.Kind == Removed {
			removed = append(removed, ev)
		} else {
			stored = append(stored, ev)
		}
	}
	sort.SliceStable(stored, func(a, b int) bool {
		x, y := &stored[a], &stored[b]
		if x.At != y.At {
			return x.At < y.At
		}
		return x.ID < y.ID || x.ID == y.ID && x.First < y.First
	})
	return stored, removed
}

func TestEngineEqualsNaiveEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		cfg.MaxLoRA, cfg.KVEvents = 0, true
		cfg.Profile.Frontend += time.Microsecond // a request submitted at an instant is not served at that instant
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		acts := drawActs(t, &cfg, true)
		n := &naive{cfg: e.cfg, pace: &e.pace, fresh: e.cfg.Blocks - 1, index: map[uint64]*page{}}
		for k, a := range acts {
			a.req.Priority = int32(rapid.IntRange(0, 2).Draw(t, "priority"))
			acts[k] = a
			j := &job{Request: a.req, arrival: int64(a.at+cfg.Profile.Frontend) * 1000}
			if cfg.NoCache {
				j.Blocks = nil
			}
			n.inbox = append(n.inbox, j)
		}
		n.run()
		var log []Event
		var kv []KVEvent
		drive(t, e, acts, func(events []Event, changes []KVEvent) {
			log = append(log, events...)
			kv = append(kv, changes...)
		})
		if diff := cmp.Diff(byTime(n.log), byTime(log)); diff != "" {
			t.Fatalf("events (-naive +engine):\n%s", diff)
		}
		stored, removed := split(n.cached)
		gotStored, gotRemoved := split(singles(kv))
		if diff := cmp.Diff(removed, gotRemoved); diff != "" {
			t.Fatalf("evictions (-naive +engine):\n%s", diff)
		}
		if diff := cmp.Diff(stored, gotStored); diff != "" {
			t.Fatalf("stored blocks (-naive +engine):\n%s", diff)
		}
	})
}
