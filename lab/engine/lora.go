package engine

import "slices"

// lora is the state of the adapter slots. Without slots, adapters are free.
type lora struct {
	slots    []place
	seen     map[int32]bool // adapters loaded before, so in host memory
	running  int            // requests in the batch that use one
	deferred int            // requests that the last scheduling passed over
	uses     uint64
}

// place is one slot.
type place struct {
	adapter int32 // 0: empty
	users   int   // requests in the batch
	ready   int64 // ns: loaded by then
	used    uint64
}

func newLoRA(slots int) lora { return lora{slots: make([]place, slots), seen: map[int32]bool{}} }

func (l *lora) slot(adapter int32) *place {
	for k := range l.slots {
		if l.slots[k].adapter == adapter {
			return &l.slots[k]
		}
	}
	return nil
}

// adapter reports whether the adapter is in a slot. If it is not, loading it begins as soon as there
// is a slot that nobody uses: an empty one, or the least recently used.
func (e *Engine) adapter(a int32) bool {
	l := &e.lora
	if len(l.slots) == 0 {
		return true
	}
	if s := l.slot(a); s != nil {
		return s.ready <= e.base
	}
	var best *place
	for k := range l.slots {
		if s := &l.slots[k]; s.users == 0 && s.ready <= e.base && (best == nil || s.used < best.used) {
			best = s
		}
	}
	if best == nil {
		return false
	}
	load := e.cfg.LoRACold
	if l.seen[a] {
		load = e.cfg.LoRASwap
	}
	l.seen[a] = true
	l.uses++
	*best = place{adapter: a, ready: e.base + int64(load), used: l.uses}
	e.stats.AdapterLoads++
	return false
}

// enter notes that a request with the adapter, which is in a slot, joins the batch.
func (l *lora) enter(a int32) {
	if s := l.slot(a); a != 0 && s != nil {
		l.running++
		l.uses++
		s.users++
		s.used = l.uses
	}
}

// leave notes that it has left.
func (l *lora) leave(a int32) {
	if s := l.slot(a); a != 0 && s != nil {
		l.running--
		s.users--
	}
}

// loaded is when the next adapter under way is loaded, or never.
func (l *lora) loaded(now int64) int64 {
	t := int64(never)
	for k := range l.slots {
		if r := l.slots[k].ready; r > now {
			t = min(t, r)
		}
	}
	return t
}

// Adapters appends the LoRA adapters of the requests in the batch and of those waiting, each once,
// in rising order.
func (e *Engine) Adapters(running, waiting []int32) (r, w []int32) {
	return e.adapters(running, e.running.head), e.adapters(waiting, e.waiting.head)
}

func (e *Engine) adapters(dst []int32, i int32) []int32 {
	from := len(dst)
	for ; i != 0; i = e.reqs[i].next {
		if a := e.reqs[i].adapter; a != 0 && !slices.Contains(dst[from:], a) {
			dst = append(dst, a)
		}
	}
	slices.Sort(dst[from:])
	return dst
}
