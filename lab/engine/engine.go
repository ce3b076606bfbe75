package engine

import "time"

// Engine is one engine. It belongs to one goroutine; see the package comment for how it is driven.
type Engine struct {
	cfg    Config
	events []Event
	kv     []KVEvent
	stats  Stats
	now    time.Duration
	dead   bool
}

// New returns an idle engine with an empty cache, or an error that names the impossible value.
func New(cfg Config) (*Engine, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	return &Engine{cfg: cfg}, nil
}

// Config returns the configuration in force, defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Submit hands a request to the server at the given time; r is not kept, except for its Blocks. It
// reaches the scheduler after the profile's frontend time. Errors are [ErrInvalid], [ErrTooLong]
// and [ErrDead]; they change nothing.
func (e *Engine) Submit(now time.Duration, r *Request) (Handle, error) {
	if e.dead {
		return Handle{}, ErrDead
	}
	e.now = max(e.now, now)
	if r.PromptTokens < 1 || r.OutputTokens < 1 {
		return Handle{}, ErrInvalid
	}
	return Handle{}, nil
}

// Advance brings the engine to the given time: every step that ends at or before it is done, the
// next one is begun. It returns what happened since the last call, in order of time; the slice is
// reused by the next call. A time before the last one changes nothing.
func (e *Engine) Advance(now time.Duration) []Event {
	e.now = max(e.now, now)
	return e.events
}

// KVEvents returns the changes of the prefix cache since the last [Engine.Advance] or [Engine.Kill]
// began, when [Config].KVEvents is set. The slice is reused by the next call of either.
func (e *Engine) KVEvents() []KVEvent { return e.kv }

// Next returns when Advance has something to do, if nothing is submitted before, and false when the
// engine is idle for good. The time may lie in the past, meaning at once. It is the end of the
// macro-step under way: the first instant at which an event can happen.
func (e *Engine) Next() (time.Duration, bool) { return e.now, false }

// Cancel drops a request at the given time, as when its client leaves: one in the batch leaves it at
// the end of the step under way, its blocks stay cached as far as they were computed. No event is
// told any more. It reports whether the request was there.
func (e *Engine) Cancel(now time.Duration, h Handle) bool {
	e.now = max(e.now, now)
	return h.gen != 0
}

// Release frees the blocks of a finished request with [Request.Hold], at the given time.
func (e *Engine) Release(now time.Duration, h Handle) bool { return e.Cancel(now, h) }

// Deliver tells that the prompt's KV of a request with [Request.Remote] has arrived.
func (e *Engine) Deliver(now time.Duration, h Handle) bool { return e.Cancel(now, h) }

// Stats fills dst.
func (e *Engine) Stats(dst *Stats) { *dst = e.stats }

// Adapters appends the LoRA adapters of the requests in the batch and of those waiting, each once,
// in rising order.
func (e *Engine) Adapters(running, waiting []int32) (r, w []int32) { return running, waiting }

// Stall freezes the engine: the step under way, or the next one, ends that much later.
func (e *Engine) Stall(now, d time.Duration) { e.now = max(e.now, now) + d }

// SetSlowdown changes the factor on step times from the next step on.
func (e *Engine) SetSlowdown(f float64) error {
	cfg := e.cfg
	cfg.Slowdown = f
	if err := cfg.check(); err != nil {
		return err
	}
	e.cfg = cfg
	return nil
}

// SetProfile switches the overhead profile, as an upgrade of the engine version does.
func (e *Engine) SetProfile(p Profile) error {
	if err := p.check(); err != nil {
		return err
	}
	e.cfg.Profile = p
	return nil
}

// SetLimits changes max_num_seqs and max_num_batched_tokens from the next step on; running requests
// over a lowered limit run on.
func (e *Engine) SetLimits(maxSeqs, maxBatched int) error {
	cfg := e.cfg
	cfg.MaxSeqs, cfg.MaxBatched = maxSeqs, maxBatched
	if err := cfg.check(); err != nil {
		return err
	}
	e.cfg = cfg
	return nil
}

// Kill ends the engine: all requests fail, the cache is gone. It returns the Failed events; the
// slice is reused by the next call of Advance.
func (e *Engine) Kill(now time.Duration) []Event {
	e.now, e.dead = max(e.now, now), true
	return e.events
}

// Revive restarts a dead engine, idle, with an empty cache and its counters at zero.
func (e *Engine) Revive(now time.Duration) { e.now, e.dead = max(e.now, now), false }
