package experiment

import (
	"fmt"
	"math"
)

// calendar orders blocks: rounds of equal length hold every kind in proportion to its share, each
// round in its own random order. It belongs to one goroutine.
type calendar struct {
	seed   uint64
	kinds  []int // of a round, in order of kind
	firsts int64 // of kind 0 in a round
	round  int64
	order  []int // of the blocks of round
	ready  bool
}

// longestRound bounds the blocks of a round: shares are multiples of at least 1/100.
const longestRound = 100

// newCalendar makes the shortest rounds in which all shares are whole numbers of blocks.
func newCalendar(shares []float64, seed uint64) (*calendar, error) {
	for n := len(shares); n <= longestRound; n++ {
		c := &calendar{seed: seed}
		for kind, s := range shares {
			blocks := math.Round(s * float64(n))
			if math.Abs(blocks-s*float64(n)) > 1e-6*float64(n) {
				c = nil
				break
			}
			for range int(blocks) {
				c.kinds = append(c.kinds, kind)
			}
			if kind == 0 {
				c.firsts = int64(blocks)
			}
		}
		if c != nil && len(c.kinds) == n {
			c.order = make([]int, n)
			return c, nil
		}
	}
	return nil, fmt.Errorf("shares %v are no whole numbers of blocks in a round of %d; write multiples of 0.01", shares, longestRound)
}

// at returns the kind of block k and, counting from block 0 on, how many of kind 0 come before it.
func (c *calendar) at(k int64) (kind int, before int64) {
	n := int64(len(c.kinds))
	round := floor(k, n)
	if !c.ready || round != c.round {
		c.shuffle(round)
	}
	i := k - round*n
	before = round * c.firsts
	for _, kind := range c.order[:i] {
		if kind == 0 {
			before++
		}
	}
	return c.order[i], before
}

func (c *calendar) shuffle(round int64) {
	c.round, c.ready = round, true
	copy(c.order, c.kinds)
	h := mix(mix(c.seed^roundSalt) ^ uint64(round))
	for i := len(c.order) - 1; i > 0; i-- {
		h = mix(h)
		j := int(h % uint64(i+1)) // a bias of 1e-17
		c.order[i], c.order[j] = c.order[j], c.order[i]
	}
}
