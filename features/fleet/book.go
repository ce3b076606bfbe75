package fleet

import (
	"sync"
	"sync/atomic"
	"time"
)

type phase uint8

const (
	free phase = iota
	pending
	streaming
)

// entry is the record behind a ticket. Entries never move and are never freed, only reused under
// the next generation, so that a stale handle can always be recognised.
type entry struct {
	mu         sync.Mutex
	gen        uint64
	inst       *instance
	work       Work
	generated  int64
	at         time.Time // of the dispatch
	first      time.Time // of the first token
	last       time.Time // of the last token
	foreseen   time.Time // when its first token is expected; zero: it will be seen
	presumed   bool      // streaming by presumption: its times were not seen and teach nothing
	phase      phase
	prev, next *entry // pending list of inst, guarded by inst.mu
}

const pageSize = 256

type page [pageSize]entry

// book is the slab of entries: pages are only added, free entries are kept in a list.
type book struct {
	pages atomic.Pointer[[]*page]

	mu   sync.Mutex
	free []uint32
}

func (b *book) at(i uint32) *entry { return &(*b.pages.Load())[i/pageSize][i%pageSize] }

func (b *book) take() (*entry, uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) == 0 {
		var pages []*page
		if p := b.pages.Load(); p != nil {
			pages = *p
		}
		first := uint32(len(pages) * pageSize)
		grown := append(append(make([]*page, 0, len(pages)+1), pages...), new(page))
		b.pages.Store(&grown)
		for i := uint32(pageSize); i > 0; i-- {
			b.free = append(b.free, first+i-1)
		}
	}
	i := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	return b.at(i), i
}

func (b *book) give(i uint32) {
	b.mu.Lock()
	b.free = append(b.free, i)
	b.mu.Unlock()
}

// Expire releases every request dispatched before the given instant and returns how many: the
// backstop that makes a leak finite whatever a gateway forgets to say.
func (f *Fleet) Expire(now, before time.Time) int {
	pages := f.book.pages.Load()
	if pages == nil {
		return 0
	}
	var n int
	for pi, p := range *pages {
		for i := range p {
			e := &p[i]
			e.mu.Lock()
			old := e.phase != free && e.at.Before(before)
			t := Ticket{f: f, index: uint32(pi*pageSize + i), gen: e.gen}
			e.mu.Unlock()
			if old && t.Done(now) {
				n++
			}
		}
	}
	return n
}

// bind adds a request, in the phase it is in, to the instance's account. The caller holds both locks.
func (in *instance) bind(e *entry) {
	in.in.Requests++
	if e.phase == streaming {
		in.in.Streaming++
		in.in.Context += e.work.Prompt*int64(e.work.Choices) + e.generated
		if !e.presumed {
			in.hist.firstSum += e.first.Sub(in.since)
			in.hist.generated += e.generated
			in.seen++
		}
		return
	}
	if !e.foreseen.IsZero() {
		in.foreseen++
	}
	in.in.Pending++
	in.in.PendingTokens += e.work.Prompt
	in.in.Uncached += e.work.Prompt - e.work.Cached
	in.in.Attention += e.work.attention()
	in.link(e)
}

// unbind takes a request out of the instance's account. The caller holds both locks.
func (in *instance) unbind(e *entry) {
	in.in.Requests--
	if e.phase == streaming {
		in.in.Streaming--
		in.in.Context -= e.work.Prompt*int64(e.work.Choices) + e.generated
		if !e.presumed {
			in.hist.firstSum -= e.first.Sub(in.since)
			in.hist.generated -= e.generated
			in.seen--
		}
		return
	}
	if !e.foreseen.IsZero() {
		in.foreseen--
	}
	in.in.Pending--
	in.in.PendingTokens -= e.work.Prompt
	in.in.Uncached -= e.work.Prompt - e.work.Cached
	in.in.Attention -= e.work.attention()
	in.unlink(e)
}

// first moves a pending request of the instance to streaming. The caller holds both locks.
func (in *instance) first(e *entry, now time.Time) {
	in.unbind(e)
	e.phase, e.first, e.last = streaming, now, now
	in.hist.sawFirst(now, now.Sub(e.at), e.work)
	in.bind(e)
	in.in.LastFirst = later(in.in.LastFirst, now)
	in.in.LastToken = later(in.in.LastToken, now)
}

// attention is u*(2c+u): twice the attention work in token^2 of computing u tokens after c cached.
func (w Work) attention() int64 {
	u := w.Prompt - w.Cached
	return u * (2*w.Cached + u)
}

// link puts a request into the pending list, by dispatch time, oldest first.
func (in *instance) link(e *entry) {
	after := in.tail
	for after != nil && e.at.Before(after.at) {
		after = after.prev
	}
	e.prev = after
	if after == nil {
		e.next, in.head = in.head, e
	} else {
		e.next, after.next = after.next, e
	}
	if e.next == nil {
		in.tail = e
	} else {
		e.next.prev = e
	}
	in.headed()
}

// headed notes who is the oldest pending request now.
func (in *instance) headed() {
	in.in.OldestPending, in.in.HeadUncached = time.Time{}, 0
	if h := in.head; h != nil {
		in.in.OldestPending, in.in.HeadUncached = h.at, h.work.Prompt-h.work.Cached
	}
}

func (in *instance) unlink(e *entry) {
	if e.prev == nil {
		in.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		in.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	in.headed()
}
