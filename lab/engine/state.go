package engine

// stage is where a request is.
type stage uint8

const (
	gone       stage = iota // the slot is unused
	dropped                 // cancelled before it reached the queue; still in the inbox
	arriving                // in the frontend
	queued                  // in the waiting list
	awaiting                // blocks allocated, KV of the prompt on its way
	prefilling              // in the batch, prompt not computed to its end
	decoding                // in the batch, one token a step
	leaving                 // cancelled in the batch; leaves at the end of the step
	holding                 // finished, blocks kept
)

// state is what the engine knows of one request. Slot 0 of the slab is unused, so that index 0 can
// mean none.
type state struct {
	id     uint64
	blocks []uint64
	hold
	prompt, output int32
	tokens         int32  // generated and visible; of a decoding request see visible
	computed       int32  // tokens computed, of a prefilling request
	offset         int64  // of a decoding request: tokens covered by blocks = Engine.clock + offset
	arrival        int64  // ns, at the scheduler
	seq            uint64 // order of submission
	rank           uint64 // order of admission
	heap           int32  // position in the heap of finishing requests, from 1
	gen            uint32
	adapter        int32
	priority       int32
	prev, next     int32 // in the running or the waiting list
	fill, beat     link
	stage          stage
	was            stage // stage a leaving request had
	keep           bool  // Request.Hold
	remote         bool  // Request.Remote, and not delivered
	delivered      bool
	scheduled      bool // was in the batch before
	forked         bool // in Engine.forked
	stepped        bool // in the slow scheduler: has its token of this step
	starved        bool // in Engine.starved
}

// list is a list of requests through their prev and next.
type list struct {
	head, tail int32
	n          int
}

// insert puts request i before request at; at 0 means at the end.
func (e *Engine) insert(l *list, i, at int32) {
	r := &e.reqs[i]
	r.next = at
	if at == 0 {
		r.prev, l.tail = l.tail, i
	} else {
		r.prev, e.reqs[at].prev = e.reqs[at].prev, i
	}
	if r.prev == 0 {
		l.head = i
	} else {
		e.reqs[r.prev].next = i
	}
	l.n++
}

func (e *Engine) remove(l *list, i int32) {
	r := &e.reqs[i]
	if r.prev == 0 {
		l.head = r.next
	} else {
		e.reqs[r.prev].next = r.next
	}
	if r.next == 0 {
		l.tail = r.prev
	} else {
		e.reqs[r.next].prev = r.prev
	}
	r.prev, r.next = 0, 0
	l.n--
}

// slot returns the index of an unused state.
func (e *Engine) slot() int32 {
	if n := len(e.unused); n > 0 {
		i := e.unused[n-1]
		e.unused = e.unused[:n-1]
		return i
	}
	e.reqs = append(e.reqs, state{gen: 1})
	return int32(len(e.reqs) - 1)
}

// drop makes the handle of a request, which is in no list and holds no block, dead.
func (e *Engine) drop(i int32) {
	e.reqs[i] = state{gen: e.reqs[i].gen + 1}
	e.unused = append(e.unused, i)
}

// find returns the index of a live request, or 0.
func (e *Engine) find(h Handle) int32 {
	if h.index <= 0 || int(h.index) >= len(e.reqs) || e.reqs[h.index].gen != h.gen {
		return 0
	}
	if s := e.reqs[h.index].stage; s == gone || s == dropped || s == leaving {
		return 0
	}
	return h.index
}

// covered is the number of tokens of a decoding request that have a place in its blocks.
func (e *Engine) covered(r *state) int { return int(e.clock + r.offset) }

// visible is the number of tokens a request has generated, at the end of a step.
func (e *Engine) visible(r *state) int32 {
	if r.stage == decoding || r.stage == leaving && r.was == decoding {
		return int32(e.covered(r)) - r.prompt + 1
	}
	return r.tokens
}
