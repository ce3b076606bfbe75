package engine

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Clone returns a copy of the engine as it is: equal calls on both give equal events from now on,
// noise included, and neither notices the other. Handles given by one are good for both. Only chains
// of block hashes, which nobody changes, are shared. It takes time proportional to what the cache
// holds.
func (e *Engine) Clone() *Engine {
	c := *e
	src := *e.source
	c.source = &src
	c.rng = rand.New(c.source)
	c.pace.g = slices.Clone(e.pace.g)
	c.cache = e.cache.clone()
	c.cache.settle, c.cache.fork = c.settle, c.fork
	if e.cache.removed != nil {
		c.cache.removed = c.removed
	}
	c.lora.slots, c.lora.seen = slices.Clone(e.lora.slots), maps.Clone(e.lora.seen)
	c.reqs, c.unused, c.inbox = slices.Clone(e.reqs), slices.Clone(e.unused), slices.Clone(e.inbox)
	c.prefills, c.leavers = slices.Clone(e.prefills), slices.Clone(e.leavers)
	c.forked, c.starved = slices.Clone(e.forked), slices.Clone(e.starved)
	c.spare, c.done = nil, nil // scratch
	c.dues, c.chunks = slices.Clone(e.dues), slices.Clone(e.chunks)
	c.fills, c.beats = e.fills.clone(), e.beats.clone()
	c.events, c.kv, c.owed = slices.Clone(e.events), slices.Clone(e.kv), slices.Clone(e.owed)
	return &c
}

// clone copies all but what is told to whom.
func (c *cache) clone() *cache {
	d := *c
	d.nodes = slices.Clone(c.nodes)
	d.table.keys, d.table.vals = slices.Clone(c.table.keys), slices.Clone(c.table.vals)
	d.settle, d.fork, d.removed = nil, nil, nil
	return &d
}

func (w *wheel) clone() wheel { return wheel{slices.Clone(w.heads), slices.Clone(w.count)} }

// Mute ends the telling of progress and of KV events: only what else [Kind] lists is told from now on,
// and steps in which nothing of it happens pass at once. When it happens does not change.
func (e *Engine) Mute() {
	e.cfg.Progress, e.cfg.KVEvents, e.cache.removed = 0, false, nil
	e.kv, e.owed = nil, nil
	clear(e.beats.heads)
	clear(e.beats.count)
}
