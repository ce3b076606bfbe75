package workload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// multiply adds copies of the recorded sessions (of single requests, where there are none), each
// beginning at a random time within the trace. What several sessions share (a system prompt, tools) the
// copies share too; everything else in a copy is text of its own.
func (r *replay) multiply(copies int, rng *rand.Rand) {
	if copies < 2 {
		return
	}
	sessions := r.sessions()
	shared := r.sharedIDs(sessions)
	span := r.rows[len(r.rows)-1].at
	number := len(r.rows)
	for k := 1; k < copies; k++ {
		for _, s := range sessions {
			shift := time.Duration(rng.Float64()*float64(span)) - r.rows[s[0]].at
			for _, i := range s {
				p := r.rows[i]
				p.at += shift
				p.number = number
				number++
				p.salt(k, shared)
				r.rows = append(r.rows, p)
			}
		}
	}
	slices.SortStableFunc(r.rows, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
}

// sessions are the places of the rows of each session, in the order of their beginnings.
func (r *replay) sessions() [][]int {
	var out [][]int
	by := map[string]int{}
	for i, p := range r.rows {
		k, seen := by[p.row.Session]
		if p.row.Session == "" || !seen {
			k = len(out)
			by[p.row.Session] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

// sharedIDs are the ids of blocks and messages that more than one session holds.
func (r *replay) sharedIDs(sessions [][]int) map[uint64]bool {
	holder, shared := map[uint64]int{}, map[uint64]bool{}
	note := func(id uint64, session int) {
		if h, seen := holder[id]; seen && h != session {
			shared[id] = true
		}
		holder[id] = session
	}
	for k, s := range sessions {
		for _, i := range s {
			for _, id := range r.rows[i].row.Blocks {
				note(id, k)
			}
			for _, m := range r.rows[i].row.Messages {
				note(m.ID, k)
			}
		}
	}
	return shared
}

// salt makes the row one of the k-th copy.
func (p *placed) salt(k int, shared map[uint64]bool) {
	if p.row.Session != "" {
		p.row.Session = fmt.Sprintf("%s-%d", p.row.Session, k)
	}
	own := func(id uint64) uint64 {
		if shared[id] {
			return id
		}
		return nameOf(id, "copy", k)
	}
	p.row.Blocks, p.row.Messages = slices.Clone(p.row.Blocks), slices.Clone(p.row.Messages)
	for i, id := range p.row.Blocks {
		p.row.Blocks[i] = own(id)
	}
	for i, m := range p.row.Messages {
		p.row.Messages[i].ID = own(m.ID)
	}
}
