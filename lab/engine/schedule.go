package engine

// schedule begins a step at the present end, with requests that arrived until cutoff; without
// anything to do the engine is idle.
func (e *Engine) schedule(cutoff int64) {
	e.start, e.began = e.base, e.due()
	e.arrivals(cutoff)
	b := batch{}
	// Where preemption leaves nothing to do, the scheduler is asked again at once.
	for calm := false; b.seqs == 0 && !calm; {
		calm = e.fill(&b)
	}
	e.busy = b.seqs > 0
	e.pure = !b.prefill && e.stepDecodes == e.decodes
	if !e.busy {
		return
	}
	factor := 1.0
	if e.lora.running > 0 {
		factor = loraFactor
	}
	if factor != e.pace.factor {
		e.setPace(factor)
	}
	e.stepFixed = e.pace.fixed(&b)
	e.end += e.noisy(e.stepFixed + e.pace.decodeKV*e.stepContext)
}

// fill puts together a batch, running requests first. It reports whether nobody was preempted; if
// somebody was, nobody is admitted.
func (e *Engine) fill(b *batch) bool {
	for _, i := range e.starved {
		e.reqs[i].starved = false
	}
	e.chunks, e.starved, e.stepContext = e.chunks[:0], e.starved[:0], 0
	budget, calm := e.cfg.MaxBatched, true
	if e.running.n > 0 {
		if !e.quick(b, &budget) {
			calm = e.careful(b, &budget)
		}
		e.clock++
		e.context += int64(e.decodes)
		e.filled()
	}
	e.stepDecodes = b.decodes
	if calm {
		e.admit(b, budget)
	}
	return calm
}

// arrivals moves requests from the frontend to the queue.
func (e *Engine) arrivals(cutoff int64) {
	for e.inboxAt < len(e.inbox) {
		i := e.inbox[e.inboxAt]
		r := &e.reqs[i]
		if r.stage == dropped {
			e.drop(i)
		} else if r.arrival > cutoff {
			break
		} else {
			r.stage = queued
			e.enqueue(i)
		}
		e.inboxAt++
	}
	if e.inboxAt > 64 && 2*e.inboxAt > len(e.inbox) {
		e.inbox = e.inbox[:copy(e.inbox, e.inbox[e.inboxAt:])]
		e.inboxAt = 0
	}
}

// enqueue puts a request into the queue: at the end, or by priority and arrival.
func (e *Engine) enqueue(i int32) {
	at := int32(0)
	if e.cfg.PriorityScheduling {
		r := &e.reqs[i]
		for k := e.waiting.tail; k != 0 && r.precedes(&e.reqs[k]); k = e.reqs[k].prev {
			at = k
		}
	}
	e.insert(&e.waiting, i, at)
}

// requeue puts a request back: to the head, or by priority and arrival, but behind those that hold
// blocks already.
func (e *Engine) requeue(i int32) {
	if e.cfg.PriorityScheduling {
		e.enqueue(i)
		return
	}
	at := e.waiting.head
	for at != 0 && e.reqs[at].delivered {
		at = e.reqs[at].next
	}
	e.insert(&e.waiting, i, at)
}

func (r *state) precedes(o *state) bool {
	if r.delivered || o.delivered {
		return r.delivered && !o.delivered
	}
	if r.priority != o.priority {
		return r.priority < o.priority
	}
	return r.arrival < o.arrival || r.arrival == o.arrival && r.seq < o.seq
}

// target is the number of tokens to compute before the request decodes: its prompt, and after a
// preemption what it had generated.
func (r *state) target() int { return int(r.prompt + r.tokens) }

// share is the number of tokens a prompt may take of a step: its rest, cut by the long-prefill
// threshold unless the request is the only one.
func (e *Engine) share(rest int) int {
	if t := e.cfg.LongPrefill; t > 0 && e.running.n+e.waiting.n > 1 {
		return min(rest, t)
	}
	return rest
}

// lacks is the number of blocks a request needs beyond its own to compute q more tokens.
func (e *Engine) lacks(r *state, q int) int {
	return max(0, ceil(int(r.computed)+q, e.cfg.BlockSize)-int(r.depth+r.plain))
}

// quick schedules all running requests at once, if there is budget and memory for all of them and
// at most the last one is not decoding yet: this is the usual case, and costs nothing per request.
func (e *Engine) quick(b *batch, budget *int) bool {
	left, fills := *budget-e.decodes, int(e.fills.count[e.fills.phase(e.clock)])
	if left < 0 || len(e.prefills) > 1 {
		return false
	}
	need := fills
	for _, i := range e.prefills {
		if i != e.running.tail {
			return false
		}
		r := &e.reqs[i]
		if q := min(e.share(r.target()-int(r.computed)), left); q > 0 {
			left -= q
			need += e.lacks(r, q)
			e.chunks = append(e.chunks, chunk{i, int32(q)})
		}
	}
	if need > e.cache.free() {
		e.chunks = e.chunks[:0]
		return false
	}
	b.decodes, b.seqs, b.tokens = e.decodes, e.decodes, e.decodes
	e.stepContext, *budget = e.context, left
	e.cache.take(fills)
	for _, c := range e.chunks {
		e.prefill(b, c)
	}
	return true
}

// prefill gives a running request the blocks for a chunk and caches those it fills.
func (e *Engine) prefill(b *batch, c chunk) {
	r := &e.reqs[c.req]
	n := e.lacks(r, int(c.tokens))
	e.cache.take(n)
	r.plain += int32(n)
	b.seqs++
	b.add(int(c.tokens), int(r.computed))
	e.publish(r, (int(r.computed)+int(c.tokens))/e.cfg.BlockSize)
}

// publish puts the request's blocks up to a depth into the prefix cache and tells it.
func (e *Engine) publish(r *state, depth int) {
	from := int(r.depth)
	e.hash(r, depth)
	e.stored(r, from, int(r.depth))
}

// hash puts the request's blocks up to a depth into the prefix cache.
func (e *Engine) hash(r *state, depth int) {
	if !e.cache.grow(&r.hold, r.blocks, min(depth, len(r.blocks))) {
		r.blocks = r.blocks[:r.depth] // a chain that contradicts another is not cached any further
	}
}

// filled caches the blocks that decoding requests fill in this step. Those that grow a run of their
// own are only told of: the run's length is settled when somebody looks.
func (e *Engine) filled() {
	size := e.cfg.BlockSize
	if e.cfg.KVEvents {
		for i := e.fills.heads[e.fills.phase(e.clock)]; i != 0; i = e.reqs[i].fill.next {
			r := &e.reqs[i]
			if n := e.covered(r) / size; !r.forked && !r.starved && n <= len(r.blocks) {
				e.stored(r, n-1, n)
			}
		}
	}
	// Publishing may fork others that were processed before.
	forked := e.forked
	e.forked, e.spare = e.spare[:0], forked
	for _, i := range forked {
		r := &e.reqs[i]
		if e.covered(r)%size == 0 && !r.starved {
			r.plain = int32(ceil(e.covered(r), size)) - r.depth
			e.publish(r, e.covered(r)/size)
			r.forked = e.parted(i)
		}
		if r.forked {
			e.forked = append(e.forked, i)
		}
	}
}

// parted reports whether a decoding request's next full block has to be looked up because others
// may have the same; else the request owns the run it grows, or has nothing left to cache.
func (e *Engine) parted(i int32) bool {
	r := &e.reqs[i]
	if int(r.depth) >= len(r.blocks) {
		return false
	}
	n := &e.cache.nodes[r.tip]
	if r.tip == 0 || n.refs != 1 || n.kids != 0 || n.hashes[0] != r.blocks[n.first] {
		return true
	}
	n.owner = i
	return false
}

// settle brings what a decoding request holds up to date.
func (e *Engine) settle(i int32) {
	r := &e.reqs[i]
	size := e.cfg.BlockSize
	n := e.covered(r)
	full := n / size
	if r.stepped {
		n++ // its block for this step is taken, the clock not yet moved
	}
	r.plain = int32(ceil(n, size)) - r.depth
	if !r.forked {
		e.hash(r, full)
	}
}

// fork is called when others come to share the run a decoding request grows.
func (e *Engine) fork(i int32) {
	e.reqs[i].forked = true
	e.forked = append(e.forked, i)
}
