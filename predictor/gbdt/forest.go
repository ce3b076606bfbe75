package gbdt

import (
	"math"
	"slices"
)

// Forest is an ensemble of binary trees made by another library; see [Import]. It is immutable and
// safe for concurrent use.
type Forest struct {
	dim    int
	trees  int
	base   float64 // score before the first tree
	scale  float64 // factor of the score
	narrow bool    // scores are summed in float32
	link   link
	roots  []root // of the trees with a split; the others are part of the base
	nodes  []node
	leaves []float64
}

// root is where a tree begins.
type root struct {
	at   int32
	sure int32 // levels above its nearest leaf
}

// node sends a row to child[1] when its key in a column of [Columns] is above cut, else to
// child[0]. A negative child c is leaf ^c.
type node struct {
	cut   int32
	col   int32
	child [2]int32
}

// link turns a summed score into a forecast.
type link uint8

const (
	identity link = iota
	exponent      // e^s: Poisson, gamma and Tweedie regression
	square        // s|s|: regression on the square root
)

// reach is the largest score, either side of zero, whose forecast is a float32.
func (l link) reach() float64 {
	switch l {
	case exponent:
		return 80
	case square:
		return 1e18
	default:
		return 1e38
	}
}

func (l link) apply(s float64) float64 {
	switch l {
	case exponent:
		return math.Exp(s)
	case square:
		return s * math.Abs(s)
	default:
		return s
	}
}

// Dim returns the number of features of a row: the length of the fields given to [Import].
func (f *Forest) Dim() int { return f.dim }

// Trees returns the number of trees.
func (f *Forest) Trees() int { return f.trees }

// Used reports whether any tree reads the feature.
func (f *Forest) Used(feature int) bool {
	return slices.ContainsFunc(f.nodes, func(n node) bool { return int(n.col)/2 == feature })
}

// Predict returns the forecast for one row of Dim features. Rows take the branches that the library
// makes them take, and leaves are summed as it sums them: LightGBM's in float64, XGBoost's in float32.
func (f *Forest) Predict(x []float32) float64 {
	sum := f.base
	for _, t := range f.roots {
		i := t.at
		for i >= 0 {
			n := &f.nodes[i]
			k := int32(math.MinInt32)
			if v := x[n.col>>1]; v == v {
				k = order(v)
			} else if n.col&1 != 0 {
				k = math.MaxInt32
			}
			i = n.child[above(k, int64(n.cut))]
		}
		sum += f.leaves[^i]
		if f.narrow {
			sum = float64(float32(sum))
		}
	}
	return f.link.apply(f.scale * sum)
}

// PredictColumns sets dst[r] to the forecast for row r of the batch: what [Forest.Predict] says, to
// float32 rounding. dst has the length of the batch. It allocates nothing.
func (f *Forest) PredictColumns(dst []float32, c *Columns) {
	dst = dst[:len(c.rows)]
	key := c.all()
	for r := range dst {
		dst[r] = float32(f.base)
	}
	for _, t := range f.roots {
		r := 0
		for ; r+4 <= len(dst); r += 4 {
			a, b, c, d := f.descend4(t, key, r)
			dst[r] += float32(f.leaves[a])
			dst[r+1] += float32(f.leaves[b])
			dst[r+2] += float32(f.leaves[c])
			dst[r+3] += float32(f.leaves[d])
		}
		for ; r < len(dst); r++ {
			i := t.at
			for i >= 0 {
				n := &f.nodes[i]
				i = n.child[above(key[n.col][r], int64(n.cut))&1]
			}
			dst[r] += float32(f.leaves[^i])
		}
	}
	for r, s := range dst {
		dst[r] = float32(f.link.apply(f.scale * float64(s)))
	}
}

// descend4 returns the leaves of rows r to r+3 in one tree. The four walks do not wait for each other's
// loads, and share the levels that no leaf cuts short.
func (f *Forest) descend4(t root, key [][]int32, r int) (i0, i1, i2, i3 int32) {
	i0, i1, i2, i3 = t.at, t.at, t.at, t.at
	nodes := f.nodes
	for range t.sure {
		n0, n1, n2, n3 := &nodes[i0], &nodes[i1], &nodes[i2], &nodes[i3]
		i0 = n0.child[above(key[n0.col][r], int64(n0.cut))&1]
		i1 = n1.child[above(key[n1.col][r+1], int64(n1.cut))&1]
		i2 = n2.child[above(key[n2.col][r+2], int64(n2.cut))&1]
		i3 = n3.child[above(key[n3.col][r+3], int64(n3.cut))&1]
	}
	rest := func(i int32, r int) int32 {
		for i >= 0 {
			n := &nodes[i]
			i = n.child[above(key[n.col][r], int64(n.cut))&1]
		}
		return ^i
	}
	return rest(i0, r), rest(i1, r+1), rest(i2, r+2), rest(i3, r+3)
}

var _ Regressor = (*Forest)(nil)
