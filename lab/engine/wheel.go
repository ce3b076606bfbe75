package engine

// wheel holds the decoding requests by the phase of something they do every so many steps. All
// decoding requests take the same steps, so a request is moved only when it starts, stops, or
// misses a step.
type wheel struct {
	heads []int32
	count []int32
}

type link struct{ prev, next int32 }

func newWheel(n int) wheel { return wheel{heads: make([]int32, n), count: make([]int32, n)} }

// phase maps any number to its place on the wheel.
func (w *wheel) phase(v int64) int {
	n := int64(len(w.heads))
	if v %= n; v < 0 {
		v += n
	}
	return int(v)
}

// fillPhase is the clock at which a decoding request needs a block, and at which its last has just
// become full.
func (e *Engine) fillPhase(r *state) int { return e.fills.phase(-r.offset) }

// beatPhase is the clock at which it is told how many tokens there are: at 1, 1+Progress, ….
func (e *Engine) beatPhase(r *state) int { return e.beats.phase(int64(r.prompt) - r.offset) }

// spin puts a decoding request on the wheels.
func (e *Engine) spin(i int32) {
	r := &e.reqs[i]
	p := e.fillPhase(r)
	e.fills.count[p]++
	if e.cfg.KVEvents {
		next := e.fills.heads[p]
		r.fill = link{next: next}
		if next != 0 {
			e.reqs[next].fill.prev = i
		}
		e.fills.heads[p] = i
	}
	if e.cfg.Progress > 0 {
		p := e.beatPhase(r)
		e.beats.count[p]++
		next := e.beats.heads[p]
		r.beat = link{next: next}
		if next != 0 {
			e.reqs[next].beat.prev = i
		}
		e.beats.heads[p] = i
	}
}

// unspin takes it off again.
func (e *Engine) unspin(i int32) {
	r := &e.reqs[i]
	p := e.fillPhase(r)
	e.fills.count[p]--
	if e.cfg.KVEvents {
		if r.fill.prev == 0 {
			e.fills.heads[p] = r.fill.next
		} else {
			e.reqs[r.fill.prev].fill.next = r.fill.next
		}
		if r.fill.next != 0 {
			e.reqs[r.fill.next].fill.prev = r.fill.prev
		}
	}
	if e.cfg.Progress > 0 {
		p := e.beatPhase(r)
		e.beats.count[p]--
		if r.beat.prev == 0 {
			e.beats.heads[p] = r.beat.next
		} else {
			e.reqs[r.beat.prev].beat.next = r.beat.next
		}
		if r.beat.next != 0 {
			e.reqs[r.beat.next].beat.prev = r.beat.prev
		}
	}
	r.fill, r.beat = link{}, link{}
}
