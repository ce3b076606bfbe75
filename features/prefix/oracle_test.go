package prefix

import (
	"slices"

	"github.com/presage-router/presage/features/fleet"
)

// oracle is the index by brute force: per instance one slice in order of recency, searched from
// end to end. It knows nothing of tables, bit sets or linked lists.
type oracle struct {
	total, capacity int
	grain           grain
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
	uses, weight          int
}

func newOracle(o Options, g grain) *oracle {
	return &oracle{grain: g, total: o.Total, capacity: o.Default, newest: map[int]uint64{}, shelves: map[int]*pile{}}
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
	n := 0
	for _, l := range o.links(blocks) {
		if p.find(l.hash) == nil {
			break
		}
		n += l.weight
	}
	return int32(n)
}

// links are the blocks of a chain that are remembered, with how many each stands for.
func (o *oracle) links(blocks []uint64) (out []held) {
	n := 0
	for i, h := range blocks {
		if n++; i < o.grain.fine || (i+1-o.grain.fine)%o.grain.stride == 0 {
			out = append(out, held{hash: h, weight: n})
			n = 0
		}
	}
	return out
}

// weight is how many blocks a list stands for.
func weight(list []held) (n int) {
	for _, b := range list {
		n += b.weight
	}
	return n
}

func hashes(list []held) (out []uint64) {
	for _, b := range list {
		out = append(out, b.hash)
	}
	return out
}

func (o *oracle) put(p *pile, blocks []uint64, done bool) {
	chain := o.links(blocks)
	for weight(chain) > min(p.limit, o.total) {
		chain = chain[:len(chain)-1]
	}
	before := 0 // blocks that the same request has just confirmed
	if n := len(o.confirmed); !done && o.tip == p && n < len(chain) && slices.Equal(hashes(chain)[:n], o.confirmed) {
		before = n
	} else {
		o.clock++
	}
	o.tip = nil
	if done {
		o.tip, o.confirmed = p, hashes(chain)
	}
	var front, added []held
	for i, b := range chain {
		old := p.find(b.hash)
		if b.born = o.clock; old != nil {
			b = *old
		}
		b.stamp = o.clock
		switch {
		case i < before:
		case done:
			b.computed = o.clock
			b.uses = max(b.uses, 1)
		default:
			b.uses++
		}
		if old == nil {
			added = append(added, b)
		} else {
			front = append(front, b)
		}
	}
	at := len(front)
	for _, b := range p.blocks {
		if !slices.Contains(hashes(chain), b.hash) {
			front = append(front, b)
		}
	}
	p.blocks = front
	for _, b := range added { // each finds room before it comes
		o.trim(p, b.weight)
		for o.held()+b.weight > o.total {
			var oldest *pile
			for _, q := range o.shelves {
				if n := len(q.blocks); n > 0 && (oldest == nil || q.blocks[n-1].stamp < oldest.blocks[len(oldest.blocks)-1].stamp) {
					oldest = q
				}
			}
			o.evict(oldest)
		}
		p.blocks = slices.Insert(p.blocks, at, b)
		at++
	}
}

// trim makes room for so many more blocks.
func (o *oracle) trim(p *pile, more int) {
	for weight(p.blocks)+more > p.limit {
		o.evict(p)
	}
}

func (o *oracle) evict(p *pile) {
	last := len(p.blocks) - 1
	o.stats.Evicted += uint64(p.blocks[last].weight)
	p.blocks = p.blocks[:last]
}

func (o *oracle) held() (n int) {
	for _, p := range o.shelves {
		n += weight(p.blocks)
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
	chain := hashes(o.links(blocks))
	at := func(i int) held {
		if b := p.find(chain[i]); b != nil {
			return *b
		}
		return held{}
	}
	first, lost := len(o.links(blocks[:claimed])), len(o.links(blocks[:got])) // unclaimed, lost if any is
	came := at(len(chain) - 1).stamp
	if first < len(chain) {
		came = at(first).born
	}
	before := func(i int) bool { return at(i).computed > 0 && at(i).computed < came }
	if got > 0 {
		p.zeros = 0
	} else if claimed >= doubtFrom && p.zeros < doubtAfter && before(0) {
		p.zeros++
	}
	if claimed-got > 1+claimed/4 && first < len(chain) && before(lost) {
		since := at(lost).computed
		kept := slices.DeleteFunc(slices.Clone(p.blocks), func(b held) bool { return b.stamp <= since })
		o.stats.Lost += uint64(weight(p.blocks) - weight(kept))
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
	for _, h := range hashes(o.links(blocks))[len(o.links(blocks[:got])):] {
		if b := p.find(h); b != nil && b.uses > 1 {
			b.uses--
		} else if b != nil && b.computed == 0 {
			o.stats.Withdrawn += uint64(b.weight)
			p.blocks = slices.DeleteFunc(p.blocks, func(b held) bool { return b.hash == h })
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
		o.trim(p, 0)
	}
}

func (o *oracle) restart(r fleet.Ref) {
	if p := o.pile(r); p != nil {
		o.tip, p.zeros = nil, 0
		o.stats.Restarted += uint64(weight(p.blocks))
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
	distinct := map[uint64]int{}
	for _, p := range o.shelves {
		st.Endpoints++
		st.Blocks += weight(p.blocks)
		if p.zeros >= doubtAfter {
			st.Doubted++
		}
		for _, b := range p.blocks {
			distinct[b.hash] = b.weight
		}
	}
	for _, n := range distinct {
		st.Distinct += n
	}
	return st
}
