package prefix

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
