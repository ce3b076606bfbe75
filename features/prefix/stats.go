package prefix

import "github.com/presage-router/presage/features/fleet"

// Stats is what an Index holds and has done.
type Stats struct {
	Endpoints int    // instances that hold blocks, or may
	Blocks    int    // blocks held, counted once per endpoint
	Distinct  int    // different blocks held
	Doubted   int    // instances whose engine was found not to cache prefixes
	Evicted   uint64 // blocks dropped for room
	Lost      uint64 // blocks dropped because their engine was found to have dropped younger ones
	Restarted uint64 // blocks dropped because their engine started anew
	Withdrawn uint64 // blocks dropped because their request failed
}

// Stats returns what the index holds and has done.
func (x *Index) Stats() Stats {
	x.mu.Lock()
	defer x.mu.Unlock()
	st := Stats{
		Blocks: x.total, Distinct: x.distinct,
		Evicted: x.evicted, Lost: x.lost, Restarted: x.restarted, Withdrawn: x.withdrawn,
	}
	for i := range x.slots {
		if s := x.slots[i].shelf; s != nil {
			st.Endpoints++
			if !s.believed() {
				st.Doubted++
			}
		}
	}
	return st
}

// Shelf is what an Index knows of one instance.
type Shelf struct {
	Blocks   int  // held
	Capacity int  // at most
	Believed bool // whether its engine is believed to cache prefixes
}

// Shelf returns what is known of an instance, and false for one that is not known or was removed.
func (x *Index) Shelf(r fleet.Ref) (Shelf, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r.Slot < 0 || r.Slot >= len(x.slots) {
		return Shelf{}, false
	}
	at := &x.slots[r.Slot]
	if at.shelf == nil || at.instance != r.Instance {
		return Shelf{}, false
	}
	return Shelf{Blocks: at.shelf.used, Capacity: at.shelf.limit, Believed: at.shelf.believed()}, true
}
