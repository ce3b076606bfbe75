package engine

import (
	"math/rand/v2"
	"time"
)

// Engine is one engine. It belongs to one goroutine; see the package comment for how it is driven.
type Engine struct {
	cfg    Config
	pace   pace
	source *rand.PCG
	rng    *rand.Rand // of source
	cache  *cache
	lora   lora

	reqs    []state // slot 0 is unused
	unused  []int32
	inbox   []int32 // requests in the frontend, in order of arrival; from inboxAt on
	inboxAt int
	waiting list // in the order in which they are admitted
	running list // in the order in which they were admitted

	prefills []int32 // running, prompt unfinished; in order of running
	leavers  []int32 // cancelled in the batch
	forked   []int32 // decoding, last run shared with others: their blocks are hashed one by one
	starved  []int32 // decoding, without a token in this step
	spare    []int32 // memory of forked
	done     []int32 // memory of complete

	// All decoding requests take the same steps: clock counts them, and what a request does every
	// so many steps, or once, is found by the clock at which it is due.
	clock    int64
	decodes  int   // decoding requests
	context  int64 // sum of their covered tokens
	dues     []due // heap: when they finish
	fills    wheel // when they need a block
	beats    wheel // when their progress is told
	awaiting int   // requests whose KV is on its way

	// The step under way ends at base ns + end ps.
	busy        bool
	pure        bool // nothing but decodes, all of them: the next step may be the same
	base, end   int64
	start       int64 // when it began, in ns, rounded down as base is
	began       int64 // the same rounded up, as events are stamped
	chunks      []chunk
	stepDecodes int
	stepContext int64
	stepFixed   int64

	now     int64
	frozen  int64 // no step begins before
	poke    bool  // something changed while idle
	blocked bool  // the head of the queue waits for KV blocks
	dead    bool
	seq     uint64
	rank    uint64

	events []Event
	kv     []KVEvent
	owed   []KVEvent // happened between two calls of Advance
	gauge  Stats     // gauges of the last step end
	stats  Stats     // counters
}

// chunk is a prefill of the step under way.
type chunk struct {
	req    int32
	tokens int32
}

// New returns an idle engine with an empty cache, or an error that names the impossible value.
func New(cfg Config) (*Engine, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, source: rand.NewPCG(cfg.Seed, 0x656e67696e65)}
	e.rng = rand.New(e.source)
	e.reset()
	return e, nil
}

// reset makes the engine idle and empty. Handles given before stay dead.
func (e *Engine) reset() {
	if e.cache == nil {
		e.cache = newCache(e.cfg.Blocks)
		e.cache.settle, e.cache.fork = e.settle, e.fork
		if e.cfg.KVEvents {
			e.cache.removed = e.removed
		}
		e.reqs = make([]state, 1, 64)
		e.fills = newWheel(e.cfg.BlockSize)
		e.beats = newWheel(max(e.cfg.Progress, 1))
	}
	e.cache.clear()
	e.unused = e.unused[:0]
	for i := len(e.reqs) - 1; i > 0; i-- {
		gen := e.reqs[i].gen
		if e.reqs[i].stage != gone {
			gen++
		}
		e.reqs[i] = state{gen: gen}
		e.unused = append(e.unused, int32(i))
	}
	e.inbox, e.inboxAt = e.inbox[:0], 0
	e.waiting, e.running = list{}, list{}
	e.prefills, e.leavers, e.forked, e.starved = e.prefills[:0], e.leavers[:0], e.forked[:0], e.starved[:0]
	e.decodes, e.context, e.dues, e.awaiting = 0, 0, e.dues[:0], 0
	clear(e.fills.heads)
	clear(e.fills.count)
	clear(e.beats.heads)
	clear(e.beats.count)
	e.busy, e.pure, e.poke, e.blocked, e.chunks = false, false, false, false, e.chunks[:0]
	e.lora = newLoRA(e.cfg.MaxLoRA)
	e.gauge = Stats{}
	e.setPace(1)
}

// Config returns the configuration in force, defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Submit hands a request to the server at the given time; r is not kept, except for its Blocks. It
// reaches the scheduler after the profile's frontend time. Errors are [ErrInvalid], [ErrTooLong]
// and [ErrDead]; they change nothing.
func (e *Engine) Submit(now time.Duration, r *Request) (Handle, error) {
	e.now = max(e.now, int64(now))
	switch size := e.cfg.BlockSize; {
	case e.dead:
		return Handle{}, ErrDead
	case r.PromptTokens < 1 || r.OutputTokens < 1:
		return Handle{}, ErrInvalid
	case r.PromptTokens > maxTokens || r.OutputTokens > maxTokens || ceil(r.PromptTokens+r.OutputTokens-1, size) > e.cache.total:
		return Handle{}, ErrTooLong
	}
	i := e.slot()
	s := &e.reqs[i]
	e.seq++
	*s = state{
		id: r.ID, prompt: int32(r.PromptTokens), output: int32(r.OutputTokens), seq: e.seq, gen: s.gen,
		adapter: r.Adapter, priority: r.Priority, stage: arriving, keep: r.Hold, remote: r.Remote,
		arrival: e.now + int64(e.cfg.Profile.Frontend),
	}
	if !e.cfg.NoCache {
		s.blocks = r.Blocks[:min(len(r.Blocks), (r.PromptTokens+r.OutputTokens)/e.cfg.BlockSize)]
	}
	if n := len(e.inbox); n > e.inboxAt {
		s.arrival = max(s.arrival, e.reqs[e.inbox[n-1]].arrival) // a switched profile must not reorder
	}
	e.inbox = append(e.inbox, i)
	e.stats.Submitted++
	return Handle{index: i, gen: s.gen}, nil
}

// maxTokens bounds prompts and answers, so that sums fit into 32 bits.
const maxTokens = 1 << 29

func ceil(n, size int) int { return (n + size - 1) / size }

// Advance brings the engine to the given time: every step that ends at or before it is done, the
// next one is begun. It returns what happened since the last call, in order of time; the slice is
// reused by the next call. A time before the last one changes nothing.
func (e *Engine) Advance(now time.Duration) []Event {
	e.begin()
	e.now = max(e.now, int64(now))
	for !e.dead {
		if !e.busy {
			t, ok := e.wake()
			if !ok || t > e.now {
				break
			}
			e.base, e.end, e.poke = t, 0, false
			e.schedule(t)
			continue
		}
		e.glide(e.now)
		if e.due() > e.now {
			break
		}
		e.step()
	}
	return e.events
}

const never = 1<<63 - 1

// step ends the step under way and begins the next, if there is one.
func (e *Engine) step() {
	begun := e.start
	e.complete()
	e.base, e.end = e.base+e.end/1000, e.end%1000
	cutoff := e.base
	if e.cfg.Profile.Lag > 0 {
		cutoff = begun
	}
	e.schedule(cutoff)
	if !e.busy && cutoff < e.base {
		e.schedule(e.base) // there was nothing to fix a batch of, so nothing was fixed ahead
	}
	e.measure()
}

// due is the end of the step under way, in ns, rounded up.
func (e *Engine) due() int64 { return e.base + (e.end+999)/1000 }

// wake is when an idle engine has something to try.
func (e *Engine) wake() (int64, bool) {
	t := int64(never)
	if e.poke {
		t = e.now
	}
	if e.inboxAt < len(e.inbox) {
		t = min(t, e.reqs[e.inbox[e.inboxAt]].arrival)
	}
	if e.waiting.n > 0 {
		t = min(t, e.lora.loaded(e.base))
	}
	return max(t, e.frozen), t != never
}

// Next returns when Advance has something to do, if nothing is submitted before, and false when the
// engine is idle for good. The time may lie in the past, meaning at once. It is the end of the
// macro-step under way: the first instant at which an event can happen.
func (e *Engine) Next() (time.Duration, bool) {
	if e.dead {
		return 0, false
	}
	if !e.busy {
		t, ok := e.wake()
		return time.Duration(t), ok
	}
	return time.Duration(e.horizon()), true
}

// KVEvents returns the changes of the prefix cache since the last [Engine.Advance] or [Engine.Kill]
// began, when [Config].KVEvents is set. The slice is reused by the next call of either.
func (e *Engine) KVEvents() []KVEvent { return e.kv }

func (e *Engine) tell(kind Kind, at int64, r *state, n int32) {
	e.events = append(e.events, Event{At: time.Duration(at), ID: r.id, N: n, Kind: kind})
}

// begin begins a call that tells events.
func (e *Engine) begin() {
	e.events, e.kv, e.owed = e.events[:0], append(e.kv[:0], e.owed...), e.owed[:0]
}

// stored tells the request's blocks from an index on as cached at the beginning of the step.
func (e *Engine) stored(r *state, from, to int) {
	if e.cfg.KVEvents {
		e.kv = appendStored(e.kv, e.began, r, from, to)
	}
}

func appendStored(dst []KVEvent, at int64, r *state, from, to int) []KVEvent {
	if from >= to {
		return dst
	}
	ev := KVEvent{At: time.Duration(at), Kind: Stored, ID: r.id, First: from, Hashes: r.blocks[from:to:to]}
	if from > 0 {
		ev.Parent = r.blocks[from-1]
	}
	return append(dst, ev)
}

func (e *Engine) removed(hs []uint64) {
	e.kv = append(e.kv, KVEvent{At: time.Duration(e.began), Kind: Removed, Hashes: hs[:len(hs):len(hs)]})
}
