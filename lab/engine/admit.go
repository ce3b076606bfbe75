package engine

// admit takes requests from the queue into the batch: in order, while there is budget and a place,
// and until one lacks KV blocks. Requests that wait for an adapter block nobody.
func (e *Engine) admit(b *batch, budget int) {
	e.blocked, e.lora.deferred = false, 0
	for i := e.waiting.head; i != 0 && budget > 0 && e.running.n < e.cfg.MaxSeqs; {
		r := &e.reqs[i]
		next := r.next
		switch {
		case r.adapter != 0 && !e.adapter(r.adapter):
			e.lora.deferred++
			i = next
			continue
		case r.delivered: // has its blocks
		case !e.allocate(r):
			return
		}
		if r.remote {
			e.await(i)
			i = next
			continue
		}
		c := chunk{i, int32(min(e.share(r.target()-int(r.computed)), budget))}
		budget -= int(c.tokens)
		e.remove(&e.waiting, i)
		e.insert(&e.running, i, 0)
		e.rank++
		r.stage, r.delivered, r.rank = prefilling, false, e.rank
		e.lora.enter(r.adapter)
		e.prefills = append(e.prefills, i)
		e.chunks = append(e.chunks, c)
		e.prefill(b, c)
		i = next
	}
}

// allocate gives a queued request what the prefix cache has of it, if there is room for all of its
// prompt (vLLM's scheduler_reserve_full_isl) and, with others in the batch, for the watermark.
func (e *Engine) allocate(r *state) bool {
	f := e.cache.match(r.blocks, (r.target()-1)/e.cfg.BlockSize)
	need := ceil(r.target(), e.cfg.BlockSize) - int(f.depth-f.idle)
	if e.running.n > 0 {
		need += int(e.cfg.Watermark * float64(e.cfg.Blocks))
	}
	if need > e.cache.free() {
		// Only while somebody generates the very tokens it needs could it fit before a block is freed.
		e.blocked = e.cache.nodes[f.tip].owner == 0
		return false
	}
	r.hold = e.cache.acquire(f)
	r.computed = f.depth * int32(e.cfg.BlockSize)
	if !r.scheduled {
		r.scheduled = true
		e.stats.Queries += uint64(r.prompt)
		e.stats.Hits += uint64(r.computed)
		if !r.remote {
			e.tell(Scheduled, e.began, r, r.computed)
		}
	}
	return true
}

// await reserves the blocks of a request whose KV comes from elsewhere.
func (e *Engine) await(i int32) {
	r := &e.reqs[i]
	n := e.lacks(r, int(r.prompt-r.computed))
	e.cache.take(n)
	r.plain += int32(n)
	r.stage = awaiting
	e.remove(&e.waiting, i)
	e.awaiting++
	e.tell(Allocated, e.began, r, r.prompt-r.computed)
}
