package prefix

import "github.com/presage-router/presage/features/fleet"

// Forget drops every block of every instance, as after a restart of all engines. Capacities stay.
func (x *Index) Forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.slots {
		s := x.slots[i].shelf
		for s != nil && s.len() > 0 {
			x.drop(s, s.last())
		}
	}
	x.oldest, x.tip = nil, tip{}
}

// Restart drops every block of one instance, whose engine started anew with an empty cache, and the
// doubt whether it caches at all. Its capacity stays.
func (x *Index) Restart(r fleet.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shelf(r)
	if s == nil {
		return
	}
	x.tip, s.zeros = tip{}, 0
	for s.len() > 0 {
		x.restarted += x.drop(s, s.last())
	}
}
