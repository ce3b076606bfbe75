package ab

import (
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/internal/stat"
)

const (
	mostCells    = 8192
	mostSessions = 1 << 20 // kept in each of two generations
)

// cell is a stretch of time: a block, or part of a split.
type cell struct {
	arms []*sums // by arm of the plan; nil: no request
}

// Ledger sums the records of a planned experiment up. [Plan.Ledger] makes it.
type Ledger struct {
	plan   *Plan
	index  map[string]int
	cells  map[int64]*cell
	homes  [2]map[uint64]int64 // cell of a session's first request: of late, and of before
	washed int
	ttfts  []stat.Sketch // by arm
	drawn  []*drawn      // by arm: what exploring showed
}

// Ledger returns an empty ledger of the plan, for the records that it was made from.
func (p *Plan) Ledger() *Ledger {
	l := &Ledger{plan: p, index: map[string]int{}, cells: map[int64]*cell{}, drawn: make([]*drawn, len(p.Arms)), ttfts: make([]stat.Sketch, len(p.Arms))}
	for i := range p.Arms {
		l.index[p.Arms[i].Name] = i
	}
	return l
}

// Add takes a record in. The order is free, except that a session is counted in the cell of the first
// of its records to come.
func (l *Ledger) Add(o *features.Observation) {
	arm, ok := l.index[o.Arm]
	if !ok || o.Policy == probe {
		return
	}
	at := o.At.UnixNano()
	k := floor(at, int64(l.plan.Block))
	into := time.Duration(at - k*int64(l.plan.Block))
	block := l.plan.Unit == "block"
	if block && into < l.plan.Washout {
		l.washed++
		return
	}
	if l.plan.Unit == "session" {
		k = l.home(o.Session, k)
	}
	c := l.cells[k]
	if c == nil {
		c = &cell{arms: make([]*sums, len(l.plan.Arms))}
		l.cells[k] = c
	}
	if c.arms[arm] == nil {
		c.arms[arm] = new(sums)
	}
	s := c.arms[arm]
	r, ok := s.add(o)
	if ok && o.TTFT > 0 {
		l.ttfts[arm].Add(o.TTFT.Seconds())
	}
	if ok && block {
		half := 0
		if into-l.plan.Washout >= (l.plan.Block-l.plan.Washout)/2 {
			half = 1
		}
		s.halves[half].add(&r)
	} else if ok {
		s.fold(l.unit(o)).add(&r)
	}
	if o.Choice.Among > 1 {
		if l.drawn[arm] == nil {
			l.drawn[arm] = newDrawn()
		}
		l.drawn[arm].add(k, o)
	}
}

// home is the cell that a session is counted in.
func (l *Ledger) home(id uint64, now int64) int64 {
	if id == 0 {
		return now
	}
	if k, ok := l.homes[0][id]; ok {
		return k
	}
	k, ok := l.homes[1][id]
	if !ok {
		k = now
	}
	if l.homes[0] == nil || len(l.homes[0]) == mostSessions { // those not met for long are forgotten
		l.homes[0], l.homes[1] = make(map[uint64]int64), l.homes[0]
	}
	l.homes[0][id] = k
	return k
}

// unit is what was assigned to an arm, as a number.
func (l *Ledger) unit(o *features.Observation) uint64 {
	if l.plan.Unit == "session" && o.Session != 0 {
		return o.Session
	}
	return hashText(o.ID)
}

// fold is the half of the arm that a unit falls into.
func (s *sums) fold(unit uint64) *tally {
	if mix(unit)&1 == 0 {
		return &s.foldA
	}
	return &s.foldB
}
