package engine

// cache is the paged KV cache with its prefix cache.
//
// Blocks have no numbers. Blocks that are not full, or have no hash, are only counted. Hashed
// blocks live in runs: consecutive blocks of one chain, with equal reference counts, in a trie that
// is split where chains part. A run is found by the hash of its first block. What vLLM does block
// by block holds for runs as a whole: a chain is freed from its end, so the deeper of two blocks of
// a chain is never freed later, is evicted first, and the cached blocks of a chain always reach back
// to its root. Taking, sharing and freeing a chain therefore costs its number of runs.
//
// One thing differs from vLLM: a block that becomes full while an equal one is cached is dropped for
// that one, where vLLM keeps both.
type cache struct {
	total int // blocks that requests can have: all but the null block
	fresh int // free blocks without hash, used first
	idle  int // cached blocks that no request holds, used next, least recently freed first

	nodes []run // 0 is the root, and the sentinel of the queue of idle runs
	spare int32 // head of the list of unused nodes, by next
	table table

	evictions uint64
	settle    func(owner int32) // brings the length of the run a request grows up to date
	fork      func(owner int32) // tells that the run a request grows has become shared
	removed   func(hs []uint64) // tells evicted blocks; nil: nobody wants to know
}

// run is consecutive hashed blocks of one chain.
type run struct {
	hashes     []uint64 // part of the Blocks of the request that made it
	first      int32    // index in the chain of hashes[0]
	parent     int32    // the run before
	refs       int32    // requests that hold it
	kids       int32    // runs that follow
	owner      int32    // the decoding request that alone holds and grows it: hashes is short of its present length
	prev, next int32    // queue of idle runs, when refs is 0
}

// hold is what one request has of the cache.
type hold struct {
	tip   int32 // the last run it holds; it holds all before too
	depth int32 // hashed blocks
	plain int32 // other blocks
}

func newCache(blocks int) *cache {
	c := &cache{total: blocks - 1, fresh: blocks - 1, nodes: make([]run, 1, 64)}
	return c
}

// free is the number of blocks that can be had.
func (c *cache) free() int { return c.fresh + c.idle }

// held is the number of blocks that requests hold, shared ones once.
func (c *cache) held() int { return c.total - c.fresh - c.idle }

// found is how far a chain is cached.
type found struct {
	tip   int32 // last run that matches, 0: none
	in    int32 // blocks of it that match
	depth int32 // blocks that match in all
	idle  int32 // of these, held by nobody
}

// match finds how many of the chain's first blocks are cached, at most limit.
func (c *cache) match(blocks []uint64, limit int) found {
	var f found
	blocks = blocks[:min(limit, len(blocks))]
	for int(f.depth) < len(blocks) {
		k := c.table.get(blocks[f.depth])
		if k == 0 || c.nodes[k].parent != f.tip {
			break
		}
		if o := c.nodes[k].owner; o != 0 {
			c.settle(o)
		}
		n := &c.nodes[k]
		m := int32(common(n.hashes, blocks[f.depth:]))
		if n.refs == 0 {
			f.idle += m
		}
		f.tip, f.in, f.depth = k, m, f.depth+m
		if int(m) < len(n.hashes) {
			break
		}
	}
	return f
}

// common is the length of the common start of two chains: if a block is equal, so are all before it.
func common(a, b []uint64) int {
	n := min(len(a), len(b))
	if n == 0 || a[n-1] == b[n-1] {
		return n
	}
	lo, hi := 0, n-1 // a[:lo] is equal, a[hi] is not
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); a[mid] == b[mid] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// acquire makes a request, which has nothing yet, hold what was found.
func (c *cache) acquire(f found) hold {
	if f.tip == 0 {
		return hold{}
	}
	tip := f.tip
	if int(f.in) < len(c.nodes[tip].hashes) {
		tip = c.split(tip, f.in)
	}
	c.share(tip)
	for k := tip; k != 0; k = c.nodes[k].parent {
		c.ref(k)
	}
	return hold{tip: tip, depth: f.depth}
}

// share tells the request that grows a run, if any, that it is no longer alone.
func (c *cache) share(k int32) {
	if o := c.nodes[k].owner; o != 0 {
		c.nodes[k].owner = 0
		c.fork(o)
	}
}

func (c *cache) ref(k int32) {
	n := &c.nodes[k]
	if n.refs == 0 {
		c.unqueue(k)
		c.idle -= len(n.hashes)
	}
	n.refs++
}

// split parts a run after m blocks and returns the new, upper part. The lower part stays what it
// was to those who hold, grow or follow it.
func (c *cache) split(k, m int32) int32 {
	u := c.node()
	n, up := &c.nodes[k], &c.nodes[u]
	*up = run{hashes: n.hashes[:m:m], first: n.first, parent: n.parent, refs: n.refs, kids: 1}
	n.hashes, n.first, n.parent = n.hashes[m:], n.first+m, u
	c.table.put(up.hashes[0], u)
	c.table.put(n.hashes[0], k)
	if n.refs == 0 {
		c.queueAfter(u, k)
	}
	return u
}

// take makes n plain blocks, which must be free, out of fresh ones first, then of idle ones.
func (c *cache) take(n int) {
	if n <= c.fresh {
		c.fresh -= n
		return
	}
	n -= c.fresh
	c.fresh = 0
	c.evict(n)
}

// evict drops the n idle blocks that were freed first.
func (c *cache) evict(n int) {
	c.idle -= n
	c.evictions += uint64(n)
	for n > 0 {
		k := c.nodes[0].next
		r := &c.nodes[k]
		keep := max(0, len(r.hashes)-n)
		n -= len(r.hashes) - keep
		if c.removed != nil {
			c.removed(r.hashes[keep:])
		}
		if keep > 0 {
			r.hashes = r.hashes[:keep]
			return
		}
		c.table.del(r.hashes[0])
		c.nodes[r.parent].kids--
		c.unqueue(k)
		*r = run{next: c.spare}
		c.spare = k
	}
}

// grow puts the request's blocks up to the given depth, which it has as plain ones, into the prefix
// cache. Blocks that are cached already are shared, the request's own copies dropped. It returns
// false when the chain contradicts one that is cached, and stops there.
func (c *cache) grow(h *hold, blocks []uint64, to int) bool {
	for int(h.depth) < to {
		tip := &c.nodes[h.tip]
		if h.tip != 0 && tip.refs == 1 && tip.kids == 0 && c.extend(h, blocks, to) {
			return true
		}
		next := blocks[h.depth:to]
		k := c.table.get(next[0])
		if k == 0 {
			k = c.node()
			c.nodes[k] = run{hashes: next, first: h.depth, parent: h.tip, refs: 1}
			c.nodes[h.tip].kids++
			c.table.put(next[0], k)
			h.plain -= int32(len(next))
			h.tip, h.depth = k, int32(to)
			return true
		}
		if c.nodes[k].parent != h.tip {
			return false
		}
		if o := c.nodes[k].owner; o != 0 {
			c.settle(o)
		}
		m := int32(common(c.nodes[k].hashes, next))
		if int(m) < len(c.nodes[k].hashes) {
			k = c.split(k, m)
		}
		c.share(k)
		c.ref(k)
		h.plain -= m
		c.fresh += int(m)
		h.tip, h.depth = k, h.depth+m
	}
	return true
}

// extend lengthens the last run of the request, which alone holds it.
func (c *cache) extend(h *hold, blocks []uint64, to int) bool {
	n := &c.nodes[h.tip]
	if n.hashes[0] != blocks[n.first] {
		return false // the run would not be found by its first block any more
	}
	n.hashes = blocks[n.first:to]
	h.plain -= int32(to) - h.depth
	h.depth = int32(to)
	return true
}

// release frees all that a request has: plain blocks become fresh, cached ones that nobody holds any
// more idle, the end of the chain before its start.
func (c *cache) release(h *hold) {
	c.fresh += int(h.plain)
	for k := h.tip; k != 0; {
		n := &c.nodes[k]
		n.refs--
		if n.refs == 0 {
			n.owner = 0
			c.idle += len(n.hashes)
			c.queueAfter(k, c.nodes[0].prev)
		}
		k = n.parent
	}
	*h = hold{}
}

// disown tells that a request no longer grows its last run.
func (c *cache) disown(k, owner int32) {
	if k != 0 && c.nodes[k].owner == owner {
		c.nodes[k].owner = 0
	}
}

// clear forgets everything; requests hold nothing after it.
func (c *cache) clear() {
	clear(c.nodes)
	c.nodes = c.nodes[:1]
	c.nodes[0], c.spare = run{}, 0
	c.table.clear()
	c.fresh, c.idle, c.evictions = c.total, 0, 0
}

// node returns an unused node.
func (c *cache) node() int32 {
	if k := c.spare; k != 0 {
		c.spare = c.nodes[k].next
		return k
	}
	c.nodes = append(c.nodes, run{})
	return int32(len(c.nodes) - 1)
}

// queueAfter puts run k into the queue of idle runs, after run at.
func (c *cache) queueAfter(k, at int32) {
	next := c.nodes[at].next
	c.nodes[k].prev, c.nodes[k].next = at, next
	c.nodes[at].next, c.nodes[next].prev = k, k
}

func (c *cache) unqueue(k int32) {
	n := &c.nodes[k]
	c.nodes[n.prev].next, c.nodes[n.next].prev = n.next, n.prev
	n.prev, n.next = 0, 0
}
