package baseline

import (
	"cmp"
	"math"
	"slices"

	"github.com/presage-router/presage/features"
)

// Tree is one regression tree of the logarithm of the time, grown to least squares (Breiman,
// Friedman, Olshen and Stone, "Classification and Regression Trees", 1984). A feature that is not
// known goes left.
type Tree struct{ nodes []node }

type node struct {
	field       features.Field
	limit       float32 // left: at most that, or not known
	left, right int     // 0: a leaf
	value       float64
}

const (
	treeDepth = 8
	leafRows  = 15
)

// Fit implements [Model].
func (t *Tree) Fit(rows []Row) error {
	t.nodes = t.nodes[:0]
	own := make([]sample, len(rows))
	for i, r := range rows {
		own[i] = sample{r.X, math.Log(r.Y)}
	}
	t.grow(own, treeDepth)
	return nil
}

type sample struct {
	x *features.Vector
	y float64
}

// grow adds the tree of the samples, which it reorders, and returns its root.
func (t *Tree) grow(s []sample, depth int) int {
	n := len(t.nodes)
	var sum float64
	for _, r := range s {
		sum += r.y
	}
	t.nodes = append(t.nodes, node{value: sum / float64(max(len(s), 1))})
	if depth == 0 || len(s) < 2*leafRows {
		return n
	}
	field, limit, ok := split(s, sum)
	if !ok {
		return n
	}
	slices.SortStableFunc(s, func(a, b sample) int { return cmp.Compare(a.x[field], b.x[field]) })
	k := 0
	for k < len(s) && !(s[k].x[field] > limit) {
		k++
	}
	left := t.grow(s[:k], depth-1)
	right := t.grow(s[k:], depth-1)
	t.nodes[n].field, t.nodes[n].limit, t.nodes[n].left, t.nodes[n].right = field, limit, left, right
	return n
}

// split finds the border that lowers the squared error most: the largest sum of (Σy)²/n over sides.
func split(s []sample, sum float64) (field features.Field, limit float32, ok bool) {
	n := float64(len(s))
	best := sum*sum/n + 1e-9*n
	sorted := slices.Clone(s)
	for f := range features.Dim {
		slices.SortFunc(sorted, func(a, b sample) int { return cmp.Compare(a.x[f], b.x[f]) }) // NaN first
		var left float64
		for i := range len(sorted) - leafRows {
			left += sorted[i].y
			v, next := sorted[i].x[f], sorted[i+1].x[f]
			if i+1 < leafRows || v == next || next != next {
				continue
			}
			k := float64(i + 1)
			if gain := left*left/k + (sum-left)*(sum-left)/(n-k); gain > best {
				best, field, limit, ok = gain, f, v, true
				if v != v {
					limit = float32(math.Inf(-1))
				}
			}
		}
	}
	return field, limit, ok
}

// Predict implements [Model].
func (t *Tree) Predict(x *features.Vector) float64 {
	n := &t.nodes[0]
	for n.left != 0 {
		if x[n.field] > n.limit {
			n = &t.nodes[n.right]
		} else {
			n = &t.nodes[n.left]
		}
	}
	return bounded(math.Exp(n.value))
}

var _ Model = (*Tree)(nil)
