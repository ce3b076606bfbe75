package compare

import (
	"cmp"
	"hash/fnv"
	"io"
	"slices"

	"github.com/presage-router/presage/lab/cluster"
)

// picks are the engines that served the requests of a run, one word per counted request, sorted: the
// upper 48 bits say which request it was, the lower 16 which engine.
type picks []uint64

// nobody stands for the engine of refused requests.
const nobody = 1<<16 - 1

// picking collects picks. Numbers of requests do not say which is which under another policy, because
// users who wait for answers ask in another order; the n-th request of a session is the same one.
type picking struct {
	seen []picked
}

type picked struct {
	number  uint64
	session uint64 // hash of class and session
	engine  uint16
	counted bool
}

func (p *picking) add(r *cluster.Record, counted bool) {
	e := uint16(nobody)
	if r.Node >= 0 {
		e = uint16(r.Node) //nolint:gosec // a fleet has at most 4096
	}
	h := fnv.New64a()
	for _, s := range []string{r.Class, "\x00", r.Session} {
		_, _ = io.WriteString(h, s) // cannot fail
	}
	p.seen = append(p.seen, picked{number: r.Number, session: h.Sum64(), engine: e, counted: counted})
}

// sorted numbers the requests of each session and returns the picks of those that count.
func (p *picking) sorted() picks {
	slices.SortFunc(p.seen, func(a, b picked) int { return cmp.Compare(a.number, b.number) })
	turns := map[uint64]uint64{}
	var out picks
	for _, s := range p.seen {
		turn := turns[s.session]
		turns[s.session]++
		if s.counted {
			out = append(out, scramble(s.session+turn*0x9e3779b97f4a7c15)&^nobody|uint64(s.engine))
		}
	}
	slices.Sort(out)
	return out
}

// scramble spreads the bits of a word (the finisher of splitmix64).
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// changed is the share of the requests in both runs that different engines served, and how many are
// in both.
func (p picks) changed(o picks) (share float64, both int) {
	differ := 0
	for i, j := 0, 0; i < len(p) && j < len(o); {
		switch a, b := p[i]|nobody, o[j]|nobody; {
		case a < b:
			i++
		case a > b:
			j++
		default:
			both++
			if p[i] != o[j] {
				differ++
			}
			i, j = i+1, j+1
		}
	}
	if both == 0 {
		return 0, 0
	}
	return float64(differ) / float64(both), both
}
