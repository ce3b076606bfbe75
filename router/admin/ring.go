package admin

import (
	"math"
	"sync"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// RingOptions bound a Ring. Zero fields take the defaults.
type RingOptions struct {
	Decisions int // newest decisions kept with every endpoint; 8,192
	Memory    int // bytes for everything; 64 MiB
	Every     int // one in so many finished decisions stays with every endpoint; 256
}

// Ring keeps decisions so that they can be explained: the newest with every endpoint until others
// push them out, and after their end the failed, the exploratory, those that missed their SLO and
// one in Every with every endpoint, the rest with the best four. It is the [router.Recorder] and the
// [router.Observer] of one router. Memory is fixed; recording does not allocate.
type Ring struct {
	mu    sync.Mutex
	every uint64
	full  shelf // newest decisions, all endpoints
	kept  shelf // ended and of interest, all endpoints
	brief shelf // ended, best four

	gen     uint64 // of names
	names   []*fleet.Endpoint
	filters []string // names of what took endpoints out, by code-1
	top     []int
}

// headBytes is what a head takes, with room to spare; wordBytes a word.
const headBytes, wordBytes = 512, 4

// topRows is how many endpoints stay of a decision nobody will ask about.
const topRows = 4

// NewRing returns a Ring. Of its memory, two thirds hold the newest decisions.
func NewRing(o RingOptions) *Ring {
	if o.Decisions <= 0 {
		o.Decisions = 8192
	}
	if o.Memory <= 0 {
		o.Memory = 64 << 20
	}
	if o.Every <= 0 {
		o.Every = 256
	}
	sixth := o.Memory / 6
	heads := max(1, min(o.Decisions, o.Memory/8/headBytes))
	return &Ring{
		every: uint64(o.Every),
		full:  newShelf(heads, (4*sixth-heads*headBytes)/wordBytes),
		kept:  newShelf(sixth/4/headBytes, sixth*3/4/wordBytes),
		brief: newShelf(sixth*3/4/headBytes, sixth/4/wordBytes),
	}
}

// Record implements [router.Recorder].
func (r *Ring) Record(id router.ID, q *router.Query, d *router.Decision) {
	e := &d.Why
	n := len(e.Totals)
	if n > len(q.Snap.States) {
		n = 0 // an explanation of something else
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gen != q.Snap.Gen || len(r.names) != len(q.Snap.States) {
		r.rename(q.Snap)
	}
	fore := q.Foretold()
	next := head{
		id: id, at: q.Now, policy: d.Policy, arm: d.Arm, failed: d.Failed, failure: d.Failure, unit: e.Unit, terms: e.Terms,
		names: r.names, slo: q.Req.SLO, picked: d.Index, reason: e.Reason, stream: q.Req.Stream, draws: len(e.Drawn) == n && n > 0,
		fores: len(fore) == n && n > 0, ttft: d.Fore.TTFT, itl: d.Fore.ITL,
		all: true, tokens: q.Req.PromptTokens, chance: d.Propensity, rows: n,
	}
	width := next.width()
	h, words := r.full.add(n * width)
	if h == nil {
		return // more endpoints than memory for one decision
	}
	next.off = h.off
	*h = next
	h.model.set(q.Req.Model)
	h.adapter.set(q.Req.Adapter)
	for i := range n {
		w := words[i*width : (i+1)*width]
		s := &q.Snap.States[i]
		w[wordTotal] = math.Float32bits(e.Totals[i])
		w[wordChance] = 0
		if h.draws {
			w[wordChance] = math.Float32bits(e.Drawn[i])
		}
		w[wordCached] = 0
		if hits := int(q.Hits[i]); hits > 0 {
			w[wordCached] = uint32(q.Req.CachedTokens(hits))
		}
		age := int64(-1)
		if !s.At.IsZero() {
			age = max(0, q.Now.Sub(s.At).Milliseconds())
		}
		putState(w, s, age)
		w[wordLedger] = r.code(e.Filtered[i])<<24 | uint32(min(max(s.Requests, 0), 1<<24-1))
		w[wordIndex] = uint32(i)
		for t, v := range e.Row(i) {
			w[fixedWords+t] = math.Float32bits(v)
		}
		if h.fores {
			putFore(w[width-foreWords:], &fore[i])
		}
	}
}

// rename starts a new list of endpoints, which older decisions do not share.
func (r *Ring) rename(s *fleet.Snapshot) {
	r.gen, r.names = s.Gen, make([]*fleet.Endpoint, len(s.States))
	for i := range s.States {
		r.names[i] = s.States[i].Endpoint
	}
}

// code numbers the names of filters from 1 on; policies have few. Past 254 they share one.
func (r *Ring) code(name string) uint32 {
	if name == "" {
		return 0
	}
	for i, f := range r.filters {
		if f == name {
			return uint32(i + 1)
		}
	}
	if len(r.filters) < math.MaxUint8-1 {
		r.filters = append(r.filters, name)
		return uint32(len(r.filters))
	}
	return math.MaxUint8
}

func (r *Ring) filter(w []uint32) string {
	switch c := int(w[wordLedger] >> 24); {
	case c == 0:
		return ""
	case c <= len(r.filters):
		return r.filters[c-1]
	}
	return "filtered"
}

// Observe implements [router.Observer]: the decision gets its outcome and moves to where it is kept.
func (r *Ring) Observe(o *features.Observation) {
	id, ok := router.ParseID(o.ID)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.full.inOrder(id)
	if h == nil {
		r.late(id, o)
		return
	}
	h.out = outcomeOf(o)
	if o.Cause != fleet.Complete || h.reason == router.ByExplore || missed(o) || id.Seq()%r.every == 0 {
		r.keep(h)
	} else {
		r.shorten(h)
	}
}

// missed reports whether a request broke an SLO that it carries.
func missed(o *features.Observation) bool {
	return over(o.TTFT, o.SLO.TTFT) || over(o.ITL, o.SLO.ITL) || over(o.E2E, o.SLO.E2E)
}

func over(actual, limit time.Duration) bool { return limit > 0 && actual > limit }

// keep copies a decision with all its rows.
func (r *Ring) keep(h *head) {
	to, words := r.kept.add(h.rows * h.width())
	if to == nil {
		r.shorten(h)
		return
	}
	off := to.off
	*to = *h
	to.off = off
	copy(words, r.full.words[h.off:h.off+len(words)])
}

// shorten copies a decision with its best rows only: the picked one, then the best of the rest.
func (r *Ring) shorten(h *head) {
	r.top = r.best(h, r.top[:0])
	to, words := r.brief.add(len(r.top) * h.width())
	if to == nil {
		return
	}
	off := to.off
	*to = *h
	to.off, to.rows, to.picked, to.all = off, len(r.top), 0, h.rows == len(r.top)
	if h.rows == 0 {
		to.picked = h.picked
	}
	for i, row := range r.top {
		copy(words[i*h.width():], r.full.row(h, row))
	}
}

func (r *Ring) best(h *head, top []int) []int {
	if h.rows == 0 {
		return top
	}
	sense := float32(-1)
	if (&router.Explanation{Unit: h.unit}).HigherWins() {
		sense = 1
	}
	top = append(top, h.picked)
	for len(top) < min(topRows, h.rows) {
		best, most := -1, float32(0)
	rows:
		for i := range h.rows {
			for _, t := range top {
				if t == i {
					continue rows
				}
			}
			w := r.full.row(h, i)
			if w[wordLedger]>>24 != 0 {
				continue
			}
			if v := sense * math.Float32frombits(w[wordTotal]); best < 0 || v > most {
				best, most = i, v
			}
		}
		if best < 0 {
			break
		}
		top = append(top, best)
	}
	return top
}

// late keeps the outcome of a decision that was pushed out before its request ended.
func (r *Ring) late(id router.ID, o *features.Observation) {
	h, _ := r.brief.add(0)
	off := h.off
	*h = head{id: id, at: o.At, policy: o.Policy, arm: o.Arm, slo: o.SLO, picked: -1, tokens: o.PromptTokens,
		stream: o.Stream, chance: o.Propensity, off: off, out: outcomeOf(o), ttft: o.Fore.TTFT, itl: o.Fore.ITL}
	h.model.set(o.Model)
	h.adapter.set(o.Adapter)
}

var (
	_ router.Recorder = (*Ring)(nil)
	_ router.Observer = (*Ring)(nil)
)
