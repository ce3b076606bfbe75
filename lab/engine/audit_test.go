package engine

import (
	"fmt"
	"slices"
)

// audit recomputes everything the engine keeps incrementally and returns the first contradiction.
func (e *Engine) audit() error {
	for i := range e.reqs {
		if r := &e.reqs[i]; i > 0 && (r.stage == decoding || r.stage == leaving && r.was == decoding) {
			e.settle(int32(i))
		}
	}
	for _, f := range []func() error{e.auditRequests, e.auditBlocks, e.auditRuns, e.auditBatch, e.auditAdapters} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (r *state) kind() stage {
	if r.stage == leaving {
		return r.was
	}
	return r.stage
}

// auditRequests: every request is in one place; injected = done + running + waiting + in the frontend.
func (e *Engine) auditRequests() error {
	count := map[stage]int{}
	left := 0
	for i := 1; i < len(e.reqs); i++ {
		count[e.reqs[i].kind()]++
		if e.reqs[i].stage == leaving {
			left++
		}
	}
	members := func(l *list, ok func(*state) bool) error {
		n, prev := 0, int32(0)
		for i := l.head; i != 0; i = e.reqs[i].next {
			if r := &e.reqs[i]; r.prev != prev || !ok(r) {
				return fmt.Errorf("request %d does not belong in the list: %+v", i, r)
			}
			prev = i
			n++
		}
		if n != l.n || l.tail != prev {
			return fmt.Errorf("list of %d says it has %d, tail %d %d", n, l.n, prev, l.tail)
		}
		return nil
	}
	if err := members(&e.running, func(r *state) bool { k := r.kind(); return k == prefilling || k == decoding }); err != nil {
		return err
	}
	if err := members(&e.waiting, func(r *state) bool { return r.stage == queued }); err != nil {
		return err
	}
	switch s := &e.stats; {
	case e.running.n != count[prefilling]+count[decoding]:
		return fmt.Errorf("%d running, stages %v", e.running.n, count)
	case e.waiting.n != count[queued]:
		return fmt.Errorf("%d waiting, stages %v", e.waiting.n, count)
	case e.awaiting != count[awaiting]:
		return fmt.Errorf("%d awaiting, stages %v", e.awaiting, count)
	case e.decodes != count[decoding] || len(e.dues) != e.decodes:
		return fmt.Errorf("%d decoding with %d ends, stages %v", e.decodes, len(e.dues), count)
	case len(e.prefills) != count[prefilling]:
		return fmt.Errorf("%d prefills, stages %v", len(e.prefills), count)
	case int(s.Submitted) != int(s.Completed+s.Cancelled+s.Failures)+e.running.n-left+e.waiting.n+e.awaiting+count[arriving]:
		return fmt.Errorf("requests do not add up: %+v, stages %v, %d leaving", *s, count, left)
	case s.Hits > s.Queries:
		return fmt.Errorf("%d hits of %d queries", s.Hits, s.Queries)
	}
	return nil
}

// auditBlocks: used + free = total, counted from the requests' own tables.
func (e *Engine) auditBlocks() error {
	plain, seen := 0, map[int32]int32{}
	var context int64
	for i := 1; i < len(e.reqs); i++ {
		r := &e.reqs[i]
		plain += int(r.plain)
		depth := 0
		for k := r.tip; k != 0; k = e.cache.nodes[k].parent {
			seen[k]++
			depth += len(e.cache.nodes[k].hashes)
		}
		if depth != int(r.depth) {
			return fmt.Errorf("request %d: runs hold %d blocks, it says %d", i, depth, r.depth)
		}
		tokens := int(r.computed)
		switch r.kind() {
		case decoding:
			tokens = e.covered(r)
			context += int64(tokens)
			if n := int(r.prompt + r.output - 1); tokens > n {
				return fmt.Errorf("request %d covers %d tokens of %d", i, tokens, n)
			}
		case prefilling:
			for _, c := range e.chunks {
				if int(c.req) == i && e.busy {
					tokens += int(c.tokens)
				}
			}
		case awaiting:
			tokens = int(r.prompt)
		case queued:
			if r.delivered {
				tokens = int(r.prompt)
			}
		case holding:
			tokens = int(r.prompt + r.output - 1)
		case gone, dropped, arriving, leaving:
		}
		if want := ceil(tokens, e.cfg.BlockSize); int(r.depth+r.plain) != want {
			return fmt.Errorf("request %d (stage %d) holds %d+%d blocks for %d tokens", i, r.stage, r.depth, r.plain, tokens)
		}
	}
	held := plain
	for k, refs := range seen {
		held += len(e.cache.nodes[k].hashes)
		if e.cache.nodes[k].refs != refs {
			return fmt.Errorf("run %d has %d references, %d holders", k, e.cache.nodes[k].refs, refs)
		}
	}
	if held != e.cache.held() || e.cache.fresh < 0 || e.cache.idle < 0 {
		return fmt.Errorf("%d blocks held, cache says %d (%d fresh, %d idle)", held, e.cache.held(), e.cache.fresh, e.cache.idle)
	}
	if context != e.context {
		return fmt.Errorf("context is %d, engine says %d", context, e.context)
	}
	return nil
}

// auditRuns: the trie, its index and the queue of idle runs agree.
func (e *Engine) auditRuns() error {
	c := e.cache
	idle, queued, runs := 0, map[int32]bool{}, 0
	for k := c.nodes[0].next; k != 0; k = c.nodes[k].next {
		queued[k] = true
		idle += len(c.nodes[k].hashes)
		if c.nodes[c.nodes[k].next].prev != k {
			return fmt.Errorf("queue is broken at run %d", k)
		}
	}
	if idle != c.idle {
		return fmt.Errorf("%d idle blocks, cache says %d", idle, c.idle)
	}
	kids := map[int32]int32{}
	for k := 1; k < len(c.nodes); k++ {
		n := &c.nodes[k]
		if len(n.hashes) == 0 {
			continue
		}
		runs++
		kids[n.parent]++
		if c.table.get(n.hashes[0]) != int32(k) {
			return fmt.Errorf("run %d is not found", k)
		}
		if (n.refs == 0) != queued[int32(k)] {
			return fmt.Errorf("run %d with %d references, in the queue: %v", k, n.refs, queued[int32(k)])
		}
		if p := &c.nodes[n.parent]; n.parent != 0 && int(p.first)+len(p.hashes) != int(n.first) {
			return fmt.Errorf("run %d begins at %d, the run before ends at %d", k, n.first, int(p.first)+len(p.hashes))
		}
		if n.owner != 0 && (e.reqs[n.owner].kind() != decoding || e.reqs[n.owner].tip != int32(k) || n.refs != 1) {
			return fmt.Errorf("run %d is not grown by its owner %d", k, n.owner)
		}
	}
	for k := range c.nodes {
		if c.nodes[k].kids != kids[int32(k)] {
			return fmt.Errorf("run %d is followed by %d runs, not %d", k, kids[int32(k)], c.nodes[k].kids)
		}
	}
	if c.table.n != runs {
		return fmt.Errorf("%d runs, %d in the index", runs, c.table.n)
	}
	return nil
}

// auditBatch: budget, places, the heap and the wheels.
func (e *Engine) auditBatch() error {
	tokens := e.stepDecodes
	for _, c := range e.chunks {
		tokens += int(c.tokens)
		if t := e.cfg.LongPrefill; t > 0 && int(c.tokens) > t && len(e.chunks)+e.stepDecodes > 1 {
			return fmt.Errorf("chunk of %d tokens over the threshold", c.tokens)
		}
	}
	if e.busy && (tokens > e.cfg.MaxBatched || tokens == 0) {
		return fmt.Errorf("%d tokens in the batch, budget %d", tokens, e.cfg.MaxBatched)
	}
	fills, beats := make([]int32, len(e.fills.count)), make([]int32, len(e.beats.count))
	for p, d := range e.dues {
		r := &e.reqs[d.req]
		if p > 0 && d.before(e.dues[(p-1)/2]) || int(r.heap) != p+1 {
			return fmt.Errorf("heap is broken at %d", p)
		}
		if want := int64(r.prompt+r.output-1) - r.offset; d.clock != want || d.clock < e.clock {
			return fmt.Errorf("request %d ends at clock %d, planned for %d, now %d", d.req, want, d.clock, e.clock)
		}
		fills[e.fillPhase(r)]++
		if e.cfg.Progress > 0 {
			beats[e.beatPhase(r)]++
		}
	}
	if !slices.Equal(fills, e.fills.count) || !slices.Equal(beats, e.beats.count) {
		return fmt.Errorf("wheels count %v and %v, engine says %v and %v", fills, beats, e.fills.count, e.beats.count)
	}
	if !e.busy && !e.dead && e.running.n > 0 {
		return fmt.Errorf("idle with %d running", e.running.n)
	}
	return nil
}

// auditAdapters: no more adapters than slots, users counted right.
func (e *Engine) auditAdapters() error {
	users := map[int32]int{}
	for i := e.running.head; i != 0; i = e.reqs[i].next {
		if a := e.reqs[i].adapter; a != 0 {
			users[a]++
		}
	}
	if e.cfg.MaxLoRA == 0 {
		return nil
	}
	if len(users) > e.cfg.MaxLoRA {
		return fmt.Errorf("%d adapters in the batch, %d slots", len(users), e.cfg.MaxLoRA)
	}
	for _, s := range e.lora.slots {
		if s.users != users[s.adapter] {
			return fmt.Errorf("adapter %d has %d users, not %d", s.adapter, users[s.adapter], s.users)
		}
		delete(users, s.adapter)
	}
	if len(users) > 0 {
		return fmt.Errorf("adapters in the batch without a slot: %v", users)
	}
	return nil
}
