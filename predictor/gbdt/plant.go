package gbdt

import (
	"fmt"
	"math"
)

// branch is a split as a file states it: a row goes right when its feature is above cut, and where
// missing says when the feature is missing. A negative child c is leaf ^c.
type branch struct {
	feature     int
	cut         float32
	missing     bool // missing values go right
	zero        bool // zeros are missing values, too
	left, right int
}

// plant adds a tree to f. Every leaf and branch that the root leads to is checked; place holds the
// features' places in a row of f.
func (f *Forest) plant(top int, branches []branch, leaves []float64, place []int) error {
	p := planter{f: f, branches: branches, leaves: leaves, place: place, seen: make([]bool, len(branches)+len(leaves))}
	t, err := p.grow(top, 0)
	if err != nil {
		return err
	}
	f.trees++
	if t.at < 0 {
		f.base += f.leaves[^t.at]
		f.leaves = f.leaves[:len(f.leaves)-1]
		return nil
	}
	f.roots = append(f.roots, t)
	return nil
}

type planter struct {
	f        *Forest
	branches []branch
	leaves   []float64
	place    []int
	seen     []bool // branches, then leaves
}

// grow copies what is below child i and returns where it stands in the forest.
func (p *planter) grow(i, depth int) (root, error) {
	f := p.f
	if i < 0 {
		l := ^i
		if l >= len(p.leaves) {
			return root{}, fmt.Errorf("leaf %d: not in 0..%d", l, len(p.leaves)-1)
		}
		if err := p.visit("leaf", l, len(p.branches)+l); err != nil {
			return root{}, err
		}
		v := p.leaves[l]
		if !(math.Abs(v) <= maxValue) {
			return root{}, fmt.Errorf("leaf %d: value %v: not within %v of zero", l, v, maxValue)
		}
		f.leaves = append(f.leaves, v)
		return root{at: ^int32(len(f.leaves) - 1)}, nil
	}
	if i >= len(p.branches) {
		return root{}, fmt.Errorf("node %d: not in 0..%d", i, len(p.branches)-1)
	}
	if err := p.visit("node", i, i); err != nil {
		return root{}, err
	}
	b := p.branches[i]
	switch {
	case depth >= maxPath:
		return root{}, fmt.Errorf("node %d: more than %d splits from the root", i, maxPath)
	case b.feature < 0 || b.feature >= len(p.place):
		return root{}, fmt.Errorf("node %d: feature %d: not in 0..%d", i, b.feature, len(p.place)-1)
	case len(f.nodes) > maxNodes-3:
		return root{}, fmt.Errorf("node %d: more than %d splits in all trees", i, maxNodes)
	}
	at := int32(len(f.nodes))
	f.nodes = append(f.nodes, node{})
	left, err := p.grow(b.left, depth+1)
	if err != nil {
		return root{}, err
	}
	right, err := p.grow(b.right, depth+1)
	if err != nil {
		return root{}, err
	}
	f.nodes[at] = p.split(b, left.at, right.at)
	return root{at: at, sure: 1 + min(left.sure, right.sure)}, nil
}

func (p *planter) visit(what string, i, at int) error {
	if p.seen[at] {
		return fmt.Errorf("%s %d: reached twice: children must form a tree", what, i)
	}
	p.seen[at] = true
	return nil
}

// zero is LightGBM's kZeroThreshold: values in (-zero, zero] count as zero.
const zero = float32(1e-35)

// split makes the node of a branch. Where zeros count as missing, and missing values do not lie next
// to the values on their side of the cut, it takes two more: first is the value above -zero, then is
// it above zero, then is it above the cut.
func (p *planter) split(b branch, left, right int32) node {
	feature, f := p.place[b.feature], p.f
	simple := func(cut float32, missing bool, left, right int32) node {
		return node{cut: order(cut), col: int32(column(feature, missing)), child: [2]int32{left, right}}
	}
	push := func(n node) int32 {
		f.nodes = append(f.nodes, n)
		return int32(len(f.nodes) - 1)
	}
	switch {
	case !b.zero:
		return simple(b.cut, b.missing, left, right)
	case b.missing && b.cut <= zero: // right of the cut, or of the zeros if these are on the left
		return simple(min(b.cut, -zero), true, left, right)
	case b.missing:
		beyond := push(simple(b.cut, true, left, right))
		return simple(-zero, true, left, push(simple(zero, false, right, beyond)))
	case b.cut >= -zero:
		return simple(max(b.cut, zero), false, left, right)
	default:
		below := push(simple(b.cut, false, left, right))
		return simple(-zero, true, below, push(simple(zero, false, left, right)))
	}
}

// finish checks that every forecast is a finite float32.
func (f *Forest) finish() error {
	sum := math.Abs(f.base)
	for i, t := range f.roots {
		end := int32(len(f.nodes))
		if i+1 < len(f.roots) {
			end = f.roots[i+1].at
		}
		var top float64
		for _, n := range f.nodes[t.at:end] {
			for _, c := range n.child {
				if c < 0 {
					top = max(top, math.Abs(f.leaves[^c]))
				}
			}
		}
		sum += top
	}
	sum *= f.scale
	if limit := f.link.reach(); !(sum <= limit) {
		return fmt.Errorf("scores reach %.3g, beyond the %.3g that this objective can turn into a forecast", sum, limit)
	}
	return nil
}
