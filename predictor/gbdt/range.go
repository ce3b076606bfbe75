package gbdt

// Range returns bounds of all that the model can foretell.
func (m *Model) Range() (low, high float64) {
	low, high = m.base, m.base
	for i := range m.trees {
		least, most := m.trees[i].leaves[0], m.trees[i].leaves[0]
		for _, v := range m.trees[i].leaves {
			least, most = min(least, v), max(most, v)
		}
		low, high = low+float64(least), high+float64(most)
	}
	return low, high
}
