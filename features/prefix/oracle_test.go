package prefix

import (
	"slices"

	"github.com/presage-router/presage/features/fleet"
)

// oracle is the index by brute force: per instance one slice in order of recency, searched from
// end to end. It knows nothing of tables, bit sets or linked lists.
type oracle struct {
	total, capacity int
	clock           int
	newest          map[int]uint64
	shelves         map[int]*pile // by slot
	stats           Stats
	tip             *pile    // that confirmed a chain, when that was the last thing done
	confirmed       []uint64 // the chain
}

type pile struct {
	instance uint64
	limit    int
	zeros    int
	blocks   []held // most recent first
}

type held struct {
	hash                  uint64
	stamp, born, computed int
	uses                  int
}

func newOracle(o Options) *oracle {
	return &oracle{total: o.Total, capacity: o.Default, newest: map[int]uint64{}, shelves: map[int]*pile{}}
}

func (o *oracle) pile(r fleet.Ref) *pile {
	if in, known := o.newest[r.Slot]; !known || in < r.Instance {
		o.tip = nil
		o.newest[r.Slot] = r.Instance
		o.shelves[r.Slot] = &pile{instance: r.Instance, limit: min(o.capacity, o.total)}
	} else if in > r.Instance {
		return nil
	}
	return o.shelves[r.Slot]
}

func (p *pile) find(hash uint64) *held {
	for i := range p.blocks {
		if p.blocks[i].hash == hash {
			return &p.blocks[i]
		}
	}
	return nil
}

func (o *oracle) match(blocks []uint64, s *fleet.State) int32 {
	o.tip = nil
	p := o.shelves[s.Slot]
	if p == nil || p.instance != s.Instance || p.zeros >= doubtAfter {
		return 0
	}
	for i, h := range blocks {
		if p.find(h) == nil {
			return int32(i)
		}
	}
	return int32(len(blocks))
}

func (o *oracle) put(p *pile, blocks []uint64, done bool) {
	blocks = blocks[:min(len(blocks), p.limit, o.total)]
	before := 0 // blocks that the same request has just confirmed
	if n := len(o.confirmed); !done && o.tip == p && n < len(blocks) && slices.Equal(blocks[:n], o.confirmed) {
		before = n
	} else {
		o.clock++
	}
	o.tip = nil
	if done {
		o.tip, o.confirmed = p, slices.Clone(blocks)
	}
	var front []held
	for i, h := range blocks {
		b := held{hash: h, born: o.clock}
		if old := p.find(h); old != nil {
			b = *old
		}
		b.stamp = o.clock
		if i < before {
			front = append(front, b)
			continue
		}
		if done {
			b.computed = o.clock
			b.uses = max(b.uses, 1)
		} else {
			b.uses++
		}
		front = append(front, b)
	}
	for _, b := range p.blocks {
		if !slices.Contains(blocks, b.hash) {
			front = append(front, b)
		}
	}
	p.blocks = front
	o.trim(p)
	for o.held() > o.total {
		var oldest *pile
		for _, q := range o.shelves {
			if n := len(q.blocks); n > 0 && (oldest == nil || q.blocks[n-1].stamp < oldest.blocks[len(oldest.blocks)-1].stamp) {
				oldest = q
			}
		}
		oldest.blocks = oldest.blocks[:len(oldest.blocks)-1]
		o.stats.Evicted++
	}
}

func (o *oracle) trim(p *pile) {
	if n := len(p.blocks) - p.limit; n > 0 {
		p.blocks = p.blocks[:p.limit]
		o.stats.Evicted += uint64(n)
	}
}

func (o *oracle) held() (n int) {
	for _, p := range o.shelves {
		n += len(p.blocks)
	}
	return n
}

func (o *oracle) insert(r fleet.Ref, blocks []uint64) {
	if p := o.pile(r); p != nil && len(blocks) > 0 {
		o.put(p, blocks, false)
	}
}

func (o *oracle) correct(r fleet.Ref, blocks []uint64, got, claimed int) {
	p := o.pile(r)
	if p == nil || len(blocks) == 0 {
		return
	}
	at := func(i int) held {
		if b := p.find(blocks[i]); b != nil {
			return *b
		}
		return held{}
	}
	came := at(len(blocks) - 1).stamp
	if claimed < len(blocks) {
		came = at(claimed).born
	}
	before := func(i int) bool { return at(i).computed > 0 && at(i).computed < came }
	if got > 0 {
		p.zeros = 0
	} else if claimed >= doubtFrom && p.zeros < doubtAfter && before(0) {
		p.zeros++
	}
	if short := claimed - got; short > 1+claimed/4 && claimed < len(blocks) && before(got) {
		since := at(got).computed
		kept := slices.DeleteFunc(slices.Clone(p.blocks), func(b held) bool { return b.stamp <= since })
		o.stats.Lost += uint64(len(p.blocks) - len(kept))
		p.blocks = kept
	}
	o.put(p, blocks, true)
}

func (o *oracle) withdraw(r fleet.Ref, blocks []uint64, got int) {
	p := o.pile(r)
	if p == nil {
		return
	}
	o.tip = nil
	for _, h := range blocks[got:] {
		if b := p.find(h); b != nil && b.uses > 1 {
			b.uses--
		} else if b != nil && b.computed == 0 {
			p.blocks = slices.DeleteFunc(p.blocks, func(b held) bool { return b.hash == h })
			o.stats.Withdrawn++
		}
	}
}

func (o *oracle) resize(r fleet.Ref, n int) {
	if p := o.pile(r); p != nil {
		if n < 1 {
			n = o.capacity
		}
		o.tip = nil
		p.limit = min(n, o.total)
		o.trim(p)
	}
}

func (o *oracle) restart(r fleet.Ref) {
	if p := o.pile(r); p != nil {
		o.tip, p.zeros = nil, 0
		o.stats.Restarted += uint64(len(p.blocks))
		p.blocks = nil
	}
}

func (o *oracle) remove(r fleet.Ref) {
	if in, known := o.newest[r.Slot]; !known || in <= r.Instance {
		o.tip = nil
		o.newest[r.Slot] = r.Instance
		delete(o.shelves, r.Slot)
	}
}

func (o *oracle) summary() Stats {
	st := o.stats
	distinct := map[uint64]bool{}
	for _, p := range o.shelves {
		st.Endpoints++
		st.Blocks += len(p.blocks)
		if p.zeros >= doubtAfter {
			st.Doubted++
		}
		for _, b := range p.blocks {
			distinct[b.hash] = true
		}
	}
	st.Distinct = len(distinct)
	return st
}
