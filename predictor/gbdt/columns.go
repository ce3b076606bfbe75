package gbdt

import "math"

// Columns is a batch of rows made ready for evaluation: each feature as a column of ordered integer
// keys, so that a split is a subtraction and a shift, without a branch to mispredict. A column is made
// when a model first asks for it. Several models may read the same columns. The zero value is ready;
// memory is reused between batches.
type Columns struct {
	rows [][]float32
	made []made     // by column
	key  [][]int32  // by column, then row: column 2f is feature f with missing values below everything, 2f+1 with them above
	pair [][]uint64 // by column, then pairs of rows, see [Columns.pairs]
	leaf []uint16
}

// made says which forms of a column are there.
type made struct{ key, pair, negative bool }

// order maps a float to an integer that compares alike: the bit pattern, with negative values
// reversed. Both zeros are equal.
func order(v float32) int32 {
	if v == 0 {
		return 0
	}
	b := int32(math.Float32bits(v))
	return b ^ int32(uint32(b>>31)>>1)
}

// Fill takes n rows; row returns the features of one, all of the same length. They are read until the
// next Fill.
func (c *Columns) Fill(n int, row func(r int) []float32) {
	clear(c.rows)
	c.rows = c.rows[:0]
	columns := 0
	for r := range n {
		x := row(r)
		c.rows = append(c.rows, x)
		columns = 2 * len(x)
	}
	for len(c.key) < columns {
		c.key, c.pair = append(c.key, nil), append(c.pair, nil)
	}
	c.made = grown(c.made, columns)
	clear(c.made)
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// column is the index of a feature's keys, with missing values above everything where right says.
func column(feature int, right bool) int {
	if right {
		return 2*feature + 1
	}
	return 2 * feature
}

// keys returns a column.
func (c *Columns) keys(col int) []int32 {
	if !c.made[col].key {
		c.key[col] = grown(c.key[col], len(c.rows))
		missing, f := int32(math.MinInt32), col/2
		if col&1 != 0 {
			missing = math.MaxInt32
		}
		out := c.key[col]
		for r, x := range c.rows {
			v := x[f]
			k := missing
			if v == v {
				k = order(v)
			}
			out[r] = k
		}
		c.made[col].key = true
	}
	return c.key[col]
}

// all returns all columns.
func (c *Columns) all() [][]int32 {
	for col := range c.made {
		c.keys(col)
	}
	return c.key
}

// above is 1 when the key exceeds the cut, else 0.
func above(key int32, cut int64) uint64 { return uint64(cut-int64(key)) >> 63 }

// guards are the top bits of the two halves of a word.
const guards = 1<<63 | 1<<31

// pairs returns a column with two rows to a word, the first in the lower half: 31 bits of key, which
// is enough without negative values, below a bit that is set. Subtracting a cut, see
// [level.pair], leaves that bit where the key exceeds the cut, and the halves do not disturb each
// other. ok is false where a value is negative.
func (c *Columns) pairs(col int) (out []uint64, ok bool) {
	if m := &c.made[col]; !m.pair {
		m.pair = true
		c.pair[col] = grown(c.pair[col], (len(c.rows)+1)/2)
		m.negative = !c.fold(c.pair[col], col)
	}
	return c.pair[col], !c.made[col].negative
}

// fold makes a column of pairs, and reports whether it could.
func (c *Columns) fold(out []uint64, col int) bool {
	missing, f := uint64(0), col/2
	if col&1 != 0 {
		missing = 1<<31 - 1
	}
	for i := range out {
		word := uint64(guards)
		for half, x := range c.rows[2*i : min(2*i+2, len(c.rows))] {
			v := x[f]
			k := missing
			switch {
			case v >= 0:
				k = uint64(math.Float32bits(v)&math.MaxInt32) + 1
			case v < 0:
				return false
			}
			word |= k << (32 * half)
		}
		out[i] = word
	}
	return true
}

// pair is what is subtracted from words of [Columns.pairs]: the cut, and one more, in both halves. A
// negative cut is below all that is not missing.
func (l *level) pair() uint64 { return uint64(max(l.key, -1)+2) * (1<<32 | 1) }

// PredictColumns sets dst[r] to the forecast for row r of the batch: what [Model.Predict] says, to
// float32 rounding. dst has the length of the batch. It allocates nothing once c has grown, and
// uses c as working memory: one call at a time.
func (m *Model) PredictColumns(dst []float32, c *Columns) {
	dst = dst[:len(c.rows)]
	for r := range dst {
		dst[r] = float32(m.base)
	}
	for i := range m.trees {
		t := &m.trees[i]
		if len(t.levels) != 4 || !t.add4(dst, c) {
			t.add(dst, c)
		}
	}
}

// add4 is add for the usual depth and columns without negative values; it reports whether it was
// that.
func (t *tree) add4(dst []float32, c *Columns) bool {
	l := t.levels
	k0, ok0 := c.pairs(column(l[0].feature, l[0].missing))
	k1, ok1 := c.pairs(column(l[1].feature, l[1].missing))
	k2, ok2 := c.pairs(column(l[2].feature, l[2].missing))
	k3, ok3 := c.pairs(column(l[3].feature, l[3].missing))
	if !ok0 || !ok1 || !ok2 || !ok3 {
		return false
	}
	c0, c1, c2, c3 := l[0].pair(), l[1].pair(), l[2].pair(), l[3].pair()
	n := len(dst) / 2
	k0, k1, k2 = k0[:len(k3)], k1[:len(k3)], k2[:len(k3)]
	leaves := (*[16]float32)(t.leaves)
	for r := range k3[:n] {
		i := (k0[r]-c0)&guards>>3 | (k1[r]-c1)&guards>>2 | (k2[r]-c2)&guards>>1 | (k3[r]-c3)&guards
		two := dst[2*r : 2*r+2 : 2*r+2]
		two[0] += leaves[i>>28&15]
		two[1] += leaves[i>>60&15]
	}
	if len(dst)%2 != 0 {
		i := (k0[n]-c0)&guards>>3 | (k1[n]-c1)&guards>>2 | (k2[n]-c2)&guards>>1 | (k3[n]-c3)&guards
		dst[2*n] += leaves[i>>28&15]
	}
	return true
}

func (t *tree) add(dst []float32, c *Columns) {
	c.leaf = grown(c.leaf, len(dst))
	leaf := c.leaf
	clear(leaf)
	for k := range t.levels {
		l := &t.levels[k]
		for r, key := range c.keys(column(l.feature, l.missing)) {
			leaf[r] |= uint16(above(key, l.key) << k)
		}
	}
	for r, i := range leaf {
		dst[r] += t.leaves[i]
	}
}
