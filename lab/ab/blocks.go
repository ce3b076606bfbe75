package ab

import (
	"math"
	"time"
)

const (
	longestBlock = 86400 // seconds
	convincing   = 25    // logarithm of the odds from which a grid is no chance
	mostOff      = 0.02  // of changes, off the grid: a restart with other settings, a clock set right
)

// span is a stretch of whole seconds in which a block began.
type span struct{ low, high int64 }

// grid is what the changes of arms say of blocks.
type grid struct {
	length  time.Duration // the longest of whole seconds at whose multiples since the Unix epoch the changes lie
	changes int
	sure    bool // changes at random would not lie so
}

// grid finds the blocks of a switchback. A change that is known to within w seconds lies at a multiple
// of a wrong length L with probability w/L, so that few well-known changes say much.
func (s *Survey) grid() grid {
	begun := s.begun()
	g := grid{changes: len(begun)}
	if len(begun) < 2 {
		return g
	}
	longest := int64(longestBlock)
	for i := 1; i < len(begun); i++ {
		longest = min(longest, begun[i].high-begun[i-1].low)
	}
	for length := longest; length >= 1; length-- {
		off := 0
		for _, b := range begun {
			if floor(b.high, length)*length < b.low {
				off++
			}
		}
		if float64(off) > mostOff*float64(len(begun)) {
			continue
		}
		odds := 0.0
		for _, b := range begun {
			odds += math.Log(max(1, float64(length)/float64(b.high-b.low+1)))
		}
		g.length, g.sure = time.Duration(length)*time.Second, odds > convincing
		return g
	}
	return g
}

// begun returns when blocks began: between the last second of an arm and the first of a washout or of
// another arm.
func (s *Survey) begun() []span {
	var out []span
	var arm uint8 // of the block; 0: unknown
	var last int64
	s.seconds(func(second int64, met uint8) {
		now := met & (noArm - 1)
		switch {
		case now&(now-1) != 0: // two arms: the border is in this very second
			out = append(out, span{second, second})
			arm = 0
			return
		case arm != 0 && now != arm:
			out = append(out, span{last, second})
		}
		if arm = now; now != 0 {
			last = second
		}
	})
	return out
}
