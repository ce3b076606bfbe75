package engine

import "time"

// Cancel drops a request at the given time, as when its client leaves: one in the batch leaves it at
// the end of the step under way, its blocks stay cached as far as they were computed. No event is
// told of it any more. It reports whether the request was there.
func (e *Engine) Cancel(now time.Duration, h Handle) bool {
	e.now = max(e.now, int64(now))
	i := e.find(h)
	if i == 0 {
		return false
	}
	r := &e.reqs[i]
	switch r.stage {
	case arriving:
		r.stage = dropped
		r.blocks = nil
	case prefilling, decoding:
		r.was, r.stage = r.stage, leaving
		e.leavers = append(e.leavers, i)
	case queued:
		e.remove(&e.waiting, i)
		e.vacate(i)
	case awaiting:
		e.awaiting--
		e.vacate(i)
	default:
		e.vacate(i)
		return true // it is counted as completed
	}
	e.stats.Cancelled++
	return true
}

// vacate frees what a request outside the batch holds.
func (e *Engine) vacate(i int32) {
	e.cache.release(&e.reqs[i].hold)
	e.drop(i)
	e.poke, e.blocked, e.lora.deferred = true, false, 0
}

// Release frees the blocks of a finished request with [Request.Hold], at the given time. It reports
// whether it held any.
func (e *Engine) Release(now time.Duration, h Handle) bool {
	e.now = max(e.now, int64(now))
	i := e.find(h)
	if i == 0 || e.reqs[i].stage != holding {
		return false
	}
	e.vacate(i)
	return true
}

// Deliver tells that the prompt's KV of a request with [Request.Remote], after [Allocated], has
// arrived. The request joins the batch before all that wait; it computes the last prompt token
// itself, as an engine must to get the first token. It reports whether the request waited for it.
func (e *Engine) Deliver(now time.Duration, h Handle) bool {
	e.now = max(e.now, int64(now))
	i := e.find(h)
	if i == 0 || e.reqs[i].stage != awaiting {
		return false
	}
	r := &e.reqs[i]
	e.awaiting--
	r.stage, r.remote, r.delivered = queued, false, true
	r.computed = r.prompt - 1
	from := int(r.depth)
	e.hash(r, int(r.prompt)/e.cfg.BlockSize)
	if e.cfg.KVEvents {
		e.owed = appendStored(e.owed, e.now, r, from, int(r.depth))
	}
	e.requeue(i)
	e.poke, e.blocked, e.lora.deferred = true, false, 0
	return true
}

// Stall freezes the engine: the step under way ends that much later; without one, none begins
// before now+d.
func (e *Engine) Stall(now, d time.Duration) {
	e.now = max(e.now, int64(now))
	d = min(max(d, 0), maxStall)
	if e.busy {
		e.end += int64(d) * 1000
		return
	}
	e.frozen = max(e.frozen, e.now+int64(d))
}

const maxStall = 24 * time.Hour

// SetSlowdown changes the factor on step times from the next step on.
func (e *Engine) SetSlowdown(f float64) error {
	cfg := e.cfg
	cfg.Slowdown = f
	return e.configure(cfg)
}

// SetProfile switches the overhead profile, as an upgrade of the engine version does, from the next
// step on.
func (e *Engine) SetProfile(p Profile) error {
	cfg := e.cfg
	cfg.Profile = p
	return e.configure(cfg)
}

// SetLimits changes max_num_seqs and max_num_batched_tokens from the next step on; running requests
// over a lowered limit run on.
func (e *Engine) SetLimits(maxSeqs, maxBatched int) error {
	cfg := e.cfg
	cfg.MaxSeqs, cfg.MaxBatched = maxSeqs, maxBatched
	return e.configure(cfg)
}

func (e *Engine) configure(cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	e.cfg = cfg
	e.pure, e.blocked = false, false // the next step is another one
	e.poke = true
	e.setPace(e.pace.factor)
	return nil
}

// Kill ends the engine: all requests fail, those with blocks held for a transfer too, the cache is gone. It returns the Failed events; the
// slice is reused by the next call of Advance.
func (e *Engine) Kill(now time.Duration) []Event {
	e.now = max(e.now, int64(now))
	e.begin()
	if e.dead {
		return nil
	}
	for i := 1; i < len(e.reqs); i++ {
		r := &e.reqs[i]
		switch r.stage {
		case gone, dropped, leaving:
			continue
		case holding:
			e.tell(Failed, e.now, r, r.output)
			continue // it is counted as completed
		case arriving, queued, awaiting, prefilling:
		case decoding:
			r.tokens = e.visible(r)
			if !r.starved {
				r.tokens-- // the token under way is lost
			}
		}
		e.tell(Failed, e.now, r, r.tokens)
		e.stats.Failures++
	}
	e.reset()
	e.dead = true
	if e.cfg.KVEvents {
		e.kv = append(e.kv, KVEvent{At: time.Duration(e.now), Kind: Cleared})
	}
	return e.events
}

// Revive restarts a dead engine, idle, with an empty cache and its counters at zero.
func (e *Engine) Revive(now time.Duration) {
	if !e.dead {
		return
	}
	e.now = max(e.now, int64(now))
	e.dead, e.frozen, e.stats = false, 0, Stats{}
}

// Cached is the number of a chain's first blocks that are in the prefix cache now.
func (e *Engine) Cached(blocks []uint64) int {
	if e.cfg.NoCache {
		return 0
	}
	return int(e.cache.match(blocks, len(blocks)).depth)
}

// Stats fills dst.
func (e *Engine) Stats(dst *Stats) {
	*dst = e.stats
	dst.At, dst.Waiting, dst.WaitingDeferred, dst.Running = e.gauge.At, e.gauge.Waiting, e.gauge.WaitingDeferred, e.gauge.Running
	dst.KVUsage, dst.Reusable = e.gauge.KVUsage, e.gauge.Reusable
	dst.Blocks, dst.BlockSize = e.cfg.Blocks, e.cfg.BlockSize
	dst.Evictions = e.cache.evictions
}

// measure refreshes the gauges, at the end of a step.
func (e *Engine) measure() {
	g := &e.gauge
	g.At = time.Duration(e.began)
	g.Running = e.running.n
	g.Waiting = e.waiting.n + e.awaiting
	g.WaitingDeferred = e.lora.deferred + e.awaiting
	for _, i := range e.inbox[e.inboxAt:] {
		if e.reqs[i].arrival > e.base {
			break
		}
		if e.reqs[i].stage == arriving {
			g.Waiting++
		}
	}
	g.KVUsage = float64(e.cache.held()) / float64(e.cache.total)
	g.Reusable = e.cache.idle
}
