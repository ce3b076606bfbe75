package gbdt

import "math"

// Columns is a batch of rows made ready for evaluation: each feature as a column of ordered integer
// keys, so that a split is a subtraction and a shift, without a branch to mispredict. Several
// models may read the same columns. The zero value is ready; memory is reused between batches.
type Columns struct {
	n    int
	key  [][]int32 // by column, then row: column 2f is feature f with missing values below everything, 2f+1 with them above
	leaf []uint16
}

// order maps a float to an integer that compares alike: the bit pattern, with negative values
// reversed. Both zeros are equal.
func order(v float32) int32 {
	if v == 0 {
		return 0
	}
	b := int32(math.Float32bits(v))
	return b ^ int32(uint32(b>>31)>>1)
}

// Fill takes n rows; row returns the features of one, all of the same length.
func (c *Columns) Fill(n int, row func(r int) []float32) {
	c.n = n
	for r := range n {
		x := row(r)
		for len(c.key) < 2*len(x) {
			c.key = append(c.key, nil)
		}
		for f, v := range x {
			if r == 0 {
				c.key[2*f], c.key[2*f+1] = grown(c.key[2*f], n), grown(c.key[2*f+1], n)
			}
			low, high := int32(math.MinInt32), int32(math.MaxInt32)
			if v == v {
				low = order(v)
				high = low
			}
			c.key[2*f][r], c.key[2*f+1][r] = low, high
		}
	}
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (c *Columns) of(l *level) []int32 { return c.key[column(l.feature, l.missing)][:c.n] }

// column is the index of a feature's keys, with missing values above everything where right says.
func column(feature int, right bool) int {
	if right {
		return 2*feature + 1
	}
	return 2 * feature
}

// PredictColumns sets dst[r] to the forecast for row r of the batch: what [Model.Predict] says, to
// float32 rounding. dst has the length of the batch. It allocates nothing once c has grown, and
// uses c as working memory: one call at a time.
func (m *Model) PredictColumns(dst []float32, c *Columns) {
	dst = dst[:c.n]
	for r := range dst {
		dst[r] = float32(m.base)
	}
	for i := range m.trees {
		t := &m.trees[i]
		if len(t.levels) == 4 {
			t.add4(dst, c)
		} else {
			t.add(dst, c)
		}
	}
}

// above is 1 when the key exceeds the cut, else 0.
func above(key int32, cut int64) uint64 { return uint64(cut-int64(key)) >> 63 }

// add4 is add, unrolled for the usual depth.
func (t *tree) add4(dst []float32, c *Columns) {
	l := t.levels
	k0, k1, k2, k3 := c.of(&l[0]), c.of(&l[1]), c.of(&l[2]), c.of(&l[3])
	c0, c1, c2, c3 := l[0].key, l[1].key, l[2].key, l[3].key
	n := len(dst)
	k0, k1, k2, k3 = k0[:n], k1[:n], k2[:n], k3[:n]
	leaves := (*[16]float32)(t.leaves)
	for r := range dst {
		i := above(k0[r], c0) | above(k1[r], c1)<<1 | above(k2[r], c2)<<2 | above(k3[r], c3)<<3
		dst[r] += leaves[i&15]
	}
}

func (t *tree) add(dst []float32, c *Columns) {
	c.leaf = grown(c.leaf, len(dst))
	leaf := c.leaf
	clear(leaf)
	for k := range t.levels {
		l := &t.levels[k]
		for r, key := range c.of(l) {
			leaf[r] |= uint16(above(key, l.key) << k)
		}
	}
	for r, i := range leaf {
		dst[r] += t.leaves[i]
	}
}
