package engine

// careful schedules the running requests one by one, in order, as vLLM does: each gets its tokens
// while there is budget; where blocks are missing, the last of the running ones is preempted. It
// reports whether nobody was.
func (e *Engine) careful(b *batch, budget *int) bool {
	calm := true
	e.stepContext = 0
	i := e.running.head
	for i != 0 && *budget > 0 {
		r := &e.reqs[i]
		q, need := 1, 0
		if r.stage == decoding {
			if e.covered(r)%e.cfg.BlockSize == 0 {
				need = 1
			}
		} else if q = min(e.share(r.target()-int(r.computed)), *budget); q > 0 {
			need = e.lacks(r, q)
		}
		if need > e.cache.free() {
			calm = false
			if !e.room(b, budget, i, need) {
				break
			}
		}
		*budget -= q
		if r.stage == decoding {
			e.cache.take(need)
			e.token(b, r, 1)
		} else {
			c := chunk{i, int32(q)}
			e.chunks = append(e.chunks, c)
			e.prefill(b, c)
		}
		i = r.next
	}
	for k := e.running.head; k != 0; k = e.reqs[k].next {
		if r := &e.reqs[k]; r.stage == decoding && !r.stepped {
			e.starve(k)
		}
	}
	for k := e.running.head; k != 0; k = e.reqs[k].next {
		e.reqs[k].stepped = false
	}
	return calm
}

// token counts a decoding request's token of this step, or with n of -1 takes it back.
func (e *Engine) token(b *batch, r *state, n int) {
	r.stepped = n > 0
	b.seqs += n
	b.tokens += n
	b.decodes += n
	e.stepContext += int64(n * e.covered(r))
}

// room preempts requests until need blocks are free for request i. It returns false when i itself
// had to go.
func (e *Engine) room(b *batch, budget *int, i int32, need int) bool {
	for need > e.cache.free() {
		v := e.victim()
		r := &e.reqs[v]
		if r.stepped {
			*budget++
			e.token(b, r, -1)
			r.stepped = true // its block goes too
		}
		for k, c := range e.chunks {
			if c.req == v {
				*budget += int(c.tokens)
				e.chunks = append(e.chunks[:k], e.chunks[k+1:]...)
				b.take(int(c.tokens), int(r.computed))
				break
			}
		}
		e.preempt(v)
		if v == i {
			return false
		}
	}
	return true
}

// take takes back a chunk that was added.
func (b *batch) take(q, ctx int) {
	b.seqs--
	b.add(-q, ctx+q)
	b.prefill = b.lin > 0
}

// victim is the running request to preempt: the last one, or the last by priority and arrival.
func (e *Engine) victim() int32 {
	v := e.running.tail
	if e.cfg.PriorityScheduling {
		for k := e.reqs[v].prev; k != 0; k = e.reqs[k].prev {
			if e.reqs[v].precedes(&e.reqs[k]) {
				v = k
			}
		}
	}
	return v
}

// preempt takes all blocks of a running request and puts it back to the head of the queue: it will
// compute again what its blocks held, as far as they are not cached then.
func (e *Engine) preempt(i int32) {
	r := &e.reqs[i]
	e.unbatch(i)
	e.cache.release(&r.hold)
	r.stage, r.computed, r.delivered, r.stepped = queued, 0, false, false
	e.requeue(i)
	e.stats.Preemptions++
	e.tell(Preempted, e.began, r, r.tokens)
}

// starve makes a decoding request miss this step.
func (e *Engine) starve(i int32) {
	r := &e.reqs[i]
	e.unspin(i)
	r.offset--
	e.spin(i)
	e.delay(i)
	e.context--
	r.starved = true
	e.starved = append(e.starved, i)
}
