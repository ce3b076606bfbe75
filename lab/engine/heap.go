package engine

// due is an entry of the heap of decoding requests by the clock at which they finish.
type due struct {
	clock int64
	rank  uint64 // ties: the one admitted first
	req   int32
}

func (a due) before(b due) bool { return a.clock < b.clock || a.clock == b.clock && a.rank < b.rank }

// plan puts a decoding request into the heap.
func (e *Engine) plan(i int32, clock int64) {
	e.dues = append(e.dues, due{clock, e.reqs[i].rank, i})
	e.up(len(e.dues) - 1)
}

// unplan takes it out again.
func (e *Engine) unplan(i int32) {
	p, last := int(e.reqs[i].heap)-1, len(e.dues)-1
	moved := e.dues[last]
	e.dues = e.dues[:last]
	e.reqs[i].heap = 0
	if p == last {
		return
	}
	e.dues[p] = moved
	e.up(p)
	e.down(int(e.reqs[moved.req].heap) - 1)
}

// delay moves it one step later.
func (e *Engine) delay(i int32) {
	p := int(e.reqs[i].heap) - 1
	e.dues[p].clock++
	e.down(p)
}

func (e *Engine) up(p int) {
	d := e.dues[p]
	for p > 0 {
		parent := (p - 1) / 2
		if !d.before(e.dues[parent]) {
			break
		}
		e.place(p, e.dues[parent])
		p = parent
	}
	e.place(p, d)
}

func (e *Engine) down(p int) {
	d := e.dues[p]
	for {
		kid := 2*p + 1
		if kid >= len(e.dues) {
			break
		}
		if kid+1 < len(e.dues) && e.dues[kid+1].before(e.dues[kid]) {
			kid++
		}
		if !e.dues[kid].before(d) {
			break
		}
		e.place(p, e.dues[kid])
		p = kid
	}
	e.place(p, d)
}

func (e *Engine) place(p int, d due) {
	e.dues[p] = d
	e.reqs[d.req].heap = int32(p + 1)
}
