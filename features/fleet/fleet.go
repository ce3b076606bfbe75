package fleet

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"
)

// Fleet holds the current endpoints, their last loads and the ledger. All methods are safe for
// concurrent use. The zero value is an empty fleet, ready to use; it must not be copied.
type Fleet struct {
	mu       sync.Mutex // guards the fields below and the order of table swaps
	gen      uint64
	instance uint64      // last instance number given
	leaving  []*instance // removed, but with open requests

	table atomic.Pointer[table]
	book  book
}

// table is one immutable set of instances.
type table struct {
	gen    uint64
	slots  []*instance // by slot; nil where a slot is free
	byAddr map[netip.AddrPort]*instance
}

// instance is one endpoint from joining to leaving, with its part of the ledger.
type instance struct {
	slot  int
	id    uint64
	since time.Time
	class ClassID
	desc  atomic.Pointer[Endpoint]
	load  atomic.Pointer[Load]

	mu         sync.Mutex // after entry.mu in lock order
	in         Inflight
	hist       history
	head, tail *entry // pending requests, oldest first
	foreseen   int    // of them, those whose first token will not be seen
	seen       int64  // streaming requests whose first token was seen
}

var emptyTable = &table{}

func (f *Fleet) current() *table {
	if t := f.table.Load(); t != nil {
		return t
	}
	return emptyTable
}

// Ref names one endpoint instance; a slot alone may have been taken over by another instance.
type Ref struct {
	Slot     int
	Instance uint64
	Endpoint *Endpoint
}

// Change says what a [Fleet.Sync] did.
type Change struct {
	Gen     uint64
	Added   []Ref
	Removed []Ref // gone for new requests; open ones stay accounted until they end
	Updated []Ref // same instance, new labels, adapters or draining
}

// Empty reports whether nothing changed.
func (c Change) Empty() bool { return len(c.Added)+len(c.Removed)+len(c.Updated) == 0 }

// Sync makes the fleet exactly the given set. An endpoint that is [Endpoint.Same] as a present one
// keeps its instance, ledger and load; any other is a new instance that inherits nothing. A
// duplicate name or address, or an invalid address, is an error and changes nothing.
func (f *Fleet) Sync(now time.Time, want []*Endpoint) (Change, error) {
	if err := validate(want); err != nil {
		return Change{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.current()
	next := &table{slots: slices.Clone(old.slots), byAddr: make(map[netip.AddrPort]*instance, len(want))}
	var ch Change
	keep := make(map[*instance]*Endpoint, len(want))
	var fresh []*Endpoint
	for _, e := range want {
		if in := old.byAddr[e.Addr]; in != nil && in.desc.Load().Same(e) {
			keep[in] = e
		} else {
			fresh = append(fresh, e)
		}
	}
	for slot, in := range next.slots {
		if in == nil {
			continue
		}
		e, ok := keep[in]
		switch {
		case !ok:
			next.slots[slot] = nil
			f.leaving = append(f.leaving, in)
			ch.Removed = append(ch.Removed, in.ref())
		default:
			next.byAddr[e.Addr] = in
			changed := !equalDetails(in.desc.Load(), e)
			in.desc.Store(e)
			if changed {
				ch.Updated = append(ch.Updated, in.ref())
			}
		}
	}
	for _, e := range fresh {
		f.instance++
		in := &instance{id: f.instance, since: now, slot: freeSlot(next.slots), class: unique.Make(e.Class())}
		in.desc.Store(e)
		in.load.Store(noLoad)
		if in.slot == len(next.slots) {
			next.slots = append(next.slots, in)
		} else {
			next.slots[in.slot] = in
		}
		next.byAddr[e.Addr] = in
		ch.Added = append(ch.Added, in.ref())
	}
	f.pruneLeaving()
	if len(ch.Added)+len(ch.Removed) > 0 {
		f.gen++
	}
	next.gen, ch.Gen = f.gen, f.gen
	f.table.Store(next)
	return ch, nil
}

// maxEndpoints bounds slots, so that per-slot arrays stay small.
const maxEndpoints = 1 << 16

func validate(want []*Endpoint) error {
	if len(want) > maxEndpoints {
		return fmt.Errorf("%d endpoints: more than %d", len(want), maxEndpoints)
	}
	names := make(map[string]struct{}, len(want))
	addrs := make(map[netip.AddrPort]string, len(want))
	for _, e := range want {
		switch {
		case e.Name == "":
			return fmt.Errorf("endpoint %s: no name", e.Addr)
		case !e.Addr.IsValid() || e.Addr.Port() == 0 || e.Addr.Addr().IsUnspecified():
			return fmt.Errorf("endpoint %s: %q is no address with a port", e.Name, e.Addr)
		}
		if _, dup := names[e.Name]; dup {
			return fmt.Errorf("endpoint %s: name used twice", e.Name)
		}
		if other, dup := addrs[e.Addr]; dup {
			return fmt.Errorf("endpoint %s: address %s is already %s", e.Name, e.Addr, other)
		}
		names[e.Name], addrs[e.Addr] = struct{}{}, e.Name
	}
	return nil
}

func freeSlot(slots []*instance) int {
	for i, in := range slots {
		if in == nil {
			return i
		}
	}
	return len(slots)
}

func equalDetails(a, b *Endpoint) bool {
	if a == b {
		return true
	}
	if a.Drain != b.Drain || a.Metrics != b.Metrics || !slices.Equal(a.Adapters, b.Adapters) || len(a.Labels) != len(b.Labels) {
		return false
	}
	for k, v := range a.Labels {
		if w, ok := b.Labels[k]; !ok || w != v {
			return false
		}
	}
	return true
}

func (in *instance) ref() Ref { return Ref{Slot: in.slot, Instance: in.id, Endpoint: in.desc.Load()} }

func (in *instance) state(now time.Time, dst *State) {
	dst.Endpoint, dst.Load = in.desc.Load(), in.load.Load()
	dst.Slot, dst.Instance, dst.Since, dst.Class = in.slot, in.id, in.since, in.class
	in.mu.Lock()
	dst.Inflight, dst.Recent = in.in, in.recent(now)
	in.mu.Unlock()
}

// Snapshot fills dst with the fleet as it is, reusing its memory. It never waits for a scrape, a
// decision or a change of the fleet.
func (f *Fleet) Snapshot(now time.Time, dst *Snapshot) {
	t := f.current()
	dst.Gen, dst.At, dst.Slots = t.gen, now, len(t.slots)
	dst.States = slices.Grow(dst.States[:0], len(t.slots))
	for _, in := range t.slots {
		if in == nil {
			continue
		}
		dst.States = dst.States[:len(dst.States)+1]
		in.state(now, &dst.States[len(dst.States)-1])
	}
}

// Leaving appends the removed instances that still have open requests; their Recent is left empty.
func (f *Fleet) Leaving(dst []State) []State {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pruneLeaving()
	for _, in := range f.leaving {
		var s State
		in.state(in.since, &s)
		s.Recent = Recent{}
		dst = append(dst, s)
	}
	return dst
}

func (f *Fleet) pruneLeaving() {
	f.leaving = slices.DeleteFunc(f.leaving, func(in *instance) bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return in.in.Requests == 0
	})
}

// SetLoad stores what a scrape of an instance said; l must not be changed afterwards. It returns
// false, storing nothing, when the instance has left.
func (f *Fleet) SetLoad(r Ref, l *Load) bool {
	in := f.current().lookup(r.Slot, r.Instance)
	if in == nil {
		return false
	}
	in.load.Store(l)
	return true
}

func (t *table) lookup(slot int, id uint64) *instance {
	if slot < 0 || slot >= len(t.slots) || t.slots[slot] == nil || t.slots[slot].id != id {
		return nil
	}
	return t.slots[slot]
}
