package engine

import "time"

// unbatch takes a running request out of the batch, with what it holds settled; its blocks stay.
func (e *Engine) unbatch(i int32) {
	r := &e.reqs[i]
	kind := r.stage
	if kind == leaving {
		kind = r.was
	}
	switch kind {
	case decoding:
		r.tokens = e.visible(r)
		e.settle(i)
		e.cache.disown(r.tip, i)
		e.unplan(i)
		e.unspin(i)
		e.decodes--
		e.context -= int64(e.covered(r))
		if r.forked {
			r.forked = false
			e.forked = without(e.forked, i)
		}
	default:
		e.prefills = without(e.prefills, i)
	}
	e.remove(&e.running, i)
	e.blocked = false
	if r.adapter != 0 {
		e.lora.leave(r.adapter)
	}
}

func without(s []int32, i int32) []int32 {
	for k, v := range s {
		if v == i {
			return append(s[:k], s[k+1:]...)
		}
	}
	return s
}

// complete ends the step under way: its tokens become visible.
func (e *Engine) complete() {
	at := e.due()
	e.busy = false
	e.stats.Steps++
	e.stats.Busy += time.Duration(at - e.began)
	e.stats.GenerationTokens += uint64(e.stepDecodes)
	if e.cfg.Progress > 0 {
		e.beat(at)
	}
	done := e.done[:0]
	for len(e.dues) > 0 && e.dues[0].clock <= e.clock {
		i := e.dues[0].req
		if e.reqs[i].stage == leaving {
			e.leave(i)
			continue
		}
		e.unbatch(i)
		done = append(done, i)
	}
	for _, c := range e.chunks {
		if e.reqs[c.req].stage == prefilling && e.computed(c, at) {
			e.unbatch(c.req)
			done = append(done, c.req)
		}
	}
	e.sort(done)
	for _, i := range done {
		e.finish(i, at)
	}
	e.done = done
	for _, i := range e.leavers {
		if e.reqs[i].stage == leaving {
			e.leave(i)
		}
	}
	e.leavers = e.leavers[:0]
}

// sort puts requests into the order of the batch. Both kinds that finish come in order already.
func (e *Engine) sort(s []int32) {
	for k := 1; k < len(s); k++ {
		for m := k; m > 0 && e.reqs[s[m]].rank < e.reqs[s[m-1]].rank; m-- {
			s[m], s[m-1] = s[m-1], s[m]
		}
	}
}

// computed ends a prefill chunk. The last one yields a token. It reports whether that was all.
func (e *Engine) computed(c chunk, at int64) bool {
	r := &e.reqs[c.req]
	r.computed += c.tokens
	e.stats.ComputedTokens += uint64(c.tokens)
	if int(r.computed) < r.target() {
		return false
	}
	e.stats.GenerationTokens++
	if r.tokens == 0 {
		e.stats.PromptTokens += uint64(r.prompt)
		e.tell(FirstToken, at, r, 1)
	} else if p := int32(e.cfg.Progress); p > 0 && r.tokens%p == 0 && r.tokens+1 < r.output {
		e.tell(Progress, at, r, r.tokens+1)
	}
	r.tokens++
	if r.tokens == r.output {
		return true
	}
	e.prefills = without(e.prefills, c.req)
	r.stage = decoding
	r.offset = int64(r.computed) - e.clock
	e.decodes++
	e.context += int64(r.computed)
	e.plan(c.req, int64(r.prompt+r.output-1)-r.offset)
	e.spin(c.req)
	if e.parted(c.req) {
		e.fork(c.req)
	}
	return false
}

// finish ends a request that has left the batch.
func (e *Engine) finish(i int32, at int64) {
	r := &e.reqs[i]
	e.tell(Finished, at, r, r.output)
	e.stats.Completed++
	if r.keep {
		r.stage = holding
		return
	}
	e.cache.release(&r.hold)
	e.drop(i)
}

// leave removes a cancelled request from the batch.
func (e *Engine) leave(i int32) {
	e.unbatch(i)
	e.cache.release(&e.reqs[i].hold)
	e.drop(i)
}

// beat tells the progress that is due at this clock.
func (e *Engine) beat(at int64) {
	for i := e.beats.heads[e.beats.phase(e.clock)]; i != 0; i = e.reqs[i].beat.next {
		r := &e.reqs[i]
		if n := e.visible(r); n < r.output && !r.starved && r.stage == decoding {
			e.tell(Progress, at, r, n)
		}
	}
}
