package prefix

// cells is a hash table from 32-bit keys to values above 0: open addressing, linear probing, and
// deletion by moving back what was displaced. Keys must be spread over their upper bits, and may
// repeat: who looks one up compares the values. Keys that differ in their last three bits alone belong
// into one line of memory. It takes half the memory and misses of a map, which is most of what
// inserting a chain costs.
type cells struct {
	at    []cell // a power of two, at most three quarters in use
	n     int
	shift uint8 // 32 - log2(len(at))
}

type cell struct{ key, val uint32 }

func newCells() cells { return cells{at: make([]cell, 8), shift: 32 - 3} }

// home is where a key belongs; it is found there or further on, before the next empty cell.
func (c *cells) home(key uint32) uint32 { return key>>c.shift&^7 | key&7 }

func (c *cells) next(i uint32) uint32 { return (i + 1) & uint32(len(c.at)-1) }

// put adds a value; the same key and value must not be in the table.
func (c *cells) put(key, val uint32) {
	if c.n >= len(c.at)/4*3 {
		old := c.at
		c.at, c.shift = make([]cell, 2*len(old)), c.shift-1
		for _, o := range old {
			if o.val != 0 {
				c.place(o)
			}
		}
	}
	c.place(cell{key, val})
	c.n++
}

func (c *cells) place(o cell) {
	i := c.home(o.key)
	for c.at[i].val != 0 {
		i = c.next(i)
	}
	c.at[i] = o
}

// remove takes out a value that is in the table.
func (c *cells) remove(key, val uint32) {
	i := c.home(key)
	for c.at[i].val != val {
		i = c.next(i)
	}
	c.n--
	// Move back each later one of the run that the gap now cuts off from its home.
	mask := uint32(len(c.at) - 1)
	for j := c.next(i); c.at[j].val != 0; j = c.next(j) {
		if (j-c.home(c.at[j].key))&mask >= (j-i)&mask {
			c.at[i] = c.at[j]
			i = j
		}
	}
	c.at[i] = cell{}
}
