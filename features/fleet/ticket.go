package fleet

import (
	"net/netip"
	"time"
)

// Work is what a request is expected to cost its endpoint, in model tokens, estimated at the decision.
type Work struct {
	Prompt  int64 // prompt tokens
	Cached  int64 // of these, believed to be in the endpoint's prefix cache
	Choices int32 // parallel answers (n), at least 1
}

func (w Work) clean() Work {
	w.Prompt = min(max(w.Prompt, 0), maxPrompt)
	w.Cached = min(max(w.Cached, 0), w.Prompt)
	w.Choices = max(w.Choices, 1)
	return w
}

// Ticket is the handle of one reserved request. It is a value, freely copied; the zero Ticket is
// closed. Every method is idempotent and may be called in any order, from any goroutine, any time
// after the request ended: an event that no longer applies changes nothing and returns false.
type Ticket struct {
	f     *Fleet
	index uint32
	gen   uint64
}

// Begin reserves work on the instance that a snapshot showed. It returns false, reserving nothing,
// when that instance has left the fleet since.
func (f *Fleet) Begin(now time.Time, r Ref, w Work) (Ticket, bool) {
	in := f.current().lookup(r.Slot, r.Instance)
	if in == nil {
		return Ticket{}, false
	}
	e, index := f.book.take()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inst, e.work, e.phase, e.at, e.generated = in, w.clean(), pending, now, 0
	e.foreseen, e.presumed = time.Time{}, false
	in.mu.Lock()
	in.in.Begun++
	in.in.BegunUncached += uint64(e.work.Prompt - e.work.Cached)
	in.in.LastBegin = later(in.in.LastBegin, now)
	in.bind(e)
	in.mu.Unlock()
	return Ticket{f: f, index: index, gen: e.gen}, true
}

// FirstToken tells that the first token arrived: the request moves from pending to streaming.
func (t Ticket) FirstToken(now time.Time) bool {
	e := t.lock()
	if e == nil {
		return false
	}
	defer e.mu.Unlock()
	if e.phase != pending {
		return false
	}
	in := e.inst
	in.mu.Lock()
	in.first(e, now)
	in.mu.Unlock()
	return true
}

// Tokens tells that n more tokens of the answer arrived. The first call implies [Ticket.FirstToken].
// A count that is not positive changes nothing.
func (t Ticket) Tokens(now time.Time, n int) bool {
	e := t.lock()
	if e == nil {
		return false
	}
	defer e.mu.Unlock()
	if n <= 0 {
		return false
	}
	in := e.inst
	in.mu.Lock()
	defer in.mu.Unlock()
	if e.phase == pending {
		in.first(e, now)
	} else if !e.presumed {
		in.hist.gaps += int64(n)
		in.hist.streamed += max(0, now.Sub(e.last))
	}
	e.generated += int64(n)
	e.last = later(e.last, now)
	in.in.Context += int64(n)
	if !e.presumed {
		in.hist.generated += int64(n)
	}
	in.in.LastToken = later(in.in.LastToken, now)
	return true
}

// Foresee tells when the first token is expected of an answer that comes all at once, at its end:
// from then on [Fleet.Presume] counts the request as streaming.
func (t Ticket) Foresee(at time.Time) bool {
	e := t.lock()
	if e == nil {
		return false
	}
	defer e.mu.Unlock()
	if e.phase != pending || at.IsZero() {
		return false
	}
	in := e.inst
	in.mu.Lock()
	if e.foreseen.IsZero() {
		in.foreseen++
	}
	e.foreseen = at
	in.mu.Unlock()
	return true
}

// Presume moves the requests whose first token was foreseen for now or earlier to streaming, and
// returns how many. Nothing was seen of them, so nothing is learned from it.
func (f *Fleet) Presume(now time.Time) int {
	n := 0
	for _, in := range f.current().slots {
		if in == nil {
			continue
		}
		in.mu.Lock()
		due := in.dueEntries()
		in.mu.Unlock()
		for _, e := range due { // entries lock before instances
			e.mu.Lock()
			if e.inst == in && e.phase == pending && !e.foreseen.IsZero() && !e.foreseen.After(now) {
				in.mu.Lock()
				in.unbind(e)
				e.phase, e.presumed, e.first, e.last = streaming, true, e.foreseen, e.foreseen
				in.bind(e)
				in.mu.Unlock()
				n++
			}
			e.mu.Unlock()
		}
	}
	return n
}

// dueEntries returns the pending entries where any may be due. The caller holds in.mu, not the
// entries' locks: what it read is looked at again.
func (in *instance) dueEntries() (pending []*entry) {
	if in.foreseen == 0 {
		return nil
	}
	for e := in.head; e != nil; e = e.next {
		pending = append(pending, e)
	}
	return pending
}

// Move binds the request to the endpoint that the gateway really used, keeping its phase; cached is
// what that endpoint is believed to hold of the prompt. It returns false, moving nothing, when no
// current endpoint has that address.
func (t Ticket) Move(addr netip.AddrPort, cached int64) bool {
	e := t.lock()
	if e == nil {
		return false
	}
	defer e.mu.Unlock()
	to := t.f.current().byAddr[addr]
	if to == nil {
		return false
	}
	from := e.inst
	if from == to {
		return true
	}
	a, b := from, to // lock in order of instance number
	if a.id > b.id {
		a, b = b, a
	}
	a.mu.Lock()
	b.mu.Lock()
	from.unbind(e)
	e.inst, e.work.Cached = to, cached
	e.work = e.work.clean()
	to.bind(e)
	to.in.Begun++
	to.in.BegunUncached += uint64(e.work.Prompt - e.work.Cached)
	b.mu.Unlock()
	a.mu.Unlock()
	return true
}

// Done releases the request for good. Only the first call returns true.
func (t Ticket) Done(now time.Time) bool {
	e := t.lock()
	if e == nil {
		return false
	}
	in := e.inst
	in.mu.Lock()
	if e.phase == streaming && !e.presumed {
		in.hist.sawEnd(e.last.Sub(e.first), e.generated)
	}
	in.unbind(e)
	in.in.LastEnd = later(in.in.LastEnd, now)
	in.mu.Unlock()
	e.gen++ // from here on every handle to this request is stale
	e.inst, e.phase, e.work = nil, free, Work{}
	e.mu.Unlock()
	t.f.book.give(t.index)
	return true
}

// Open reports whether the request has not ended.
func (t Ticket) Open() bool {
	e := t.lock()
	if e == nil {
		return false
	}
	e.mu.Unlock()
	return true
}

// Endpoint returns the instance the request is bound to.
func (t Ticket) Endpoint() (Ref, bool) {
	e := t.lock()
	if e == nil {
		return Ref{}, false
	}
	defer e.mu.Unlock()
	return e.inst.ref(), true
}

// lock returns the ticket's entry, locked, or nil when the request has ended.
func (t Ticket) lock() *entry {
	if t.f == nil {
		return nil
	}
	e := t.f.book.at(t.index)
	e.mu.Lock()
	if e.gen != t.gen || e.phase == free {
		e.mu.Unlock()
		return nil
	}
	return e
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// maxPrompt bounds the tokens of one request, so that no sum in the ledger can overflow.
const maxPrompt = 1 << 24
