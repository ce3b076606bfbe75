package engine

// table maps the hash of a run's first block to the run: open addressing with linear probing, and
// deletion by shifting back, so that it never degrades. Keys are hashes already, but a caller's
// may be small numbers, so they are mixed.
type table struct {
	keys []uint64
	vals []int32 // 0: empty
	n    int
	mask uint64
}

func mix(h uint64) uint64 { return (h ^ h>>32) * 0x9e3779b97f4a7c15 >> 16 }

// get returns the value of a key, or 0.
func (t *table) get(key uint64) int32 {
	if t.n == 0 {
		return 0
	}
	for i := mix(key) & t.mask; ; i = (i + 1) & t.mask {
		if t.vals[i] == 0 || t.keys[i] == key {
			return t.vals[i]
		}
	}
}

// put sets the value, not 0, of a key.
func (t *table) put(key uint64, val int32) {
	if 2*t.n >= len(t.vals) {
		t.grow()
	}
	i := mix(key) & t.mask
	for t.vals[i] != 0 && t.keys[i] != key {
		i = (i + 1) & t.mask
	}
	if t.vals[i] == 0 {
		t.n++
	}
	t.keys[i], t.vals[i] = key, val
}

func (t *table) grow() {
	old := *t
	size := max(64, 2*len(old.vals))
	*t = table{keys: make([]uint64, size), vals: make([]int32, size), mask: uint64(size - 1)}
	for i, v := range old.vals {
		if v != 0 {
			t.put(old.keys[i], v)
		}
	}
}

// del removes a key.
func (t *table) del(key uint64) {
	if t.n == 0 {
		return
	}
	i := mix(key) & t.mask
	for t.keys[i] != key || t.vals[i] == 0 {
		if t.vals[i] == 0 {
			return
		}
		i = (i + 1) & t.mask
	}
	t.n--
	for j := i; ; {
		j = (j + 1) & t.mask
		if t.vals[j] == 0 {
			break
		}
		// The entry at j may fill the hole only if its home is not between the hole and j.
		if home := mix(t.keys[j]) & t.mask; (j-home)&t.mask >= (j-i)&t.mask {
			t.keys[i], t.vals[i] = t.keys[j], t.vals[j]
			i = j
		}
	}
	t.vals[i] = 0
}

func (t *table) clear() {
	clear(t.vals)
	t.n = 0
}
