package training

import (
	"container/heap"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor"
)

// contest lets learners live through the same requests in order of time, each with its own forecasts.
type contest struct {
	players []*player
	open    agenda
	where   whereabouts
	err     error
}

// player is one learner.
type player struct {
	name    string
	learner *predictor.Learner
	still   bool // never learns
	frozen  *predictor.Frozen
	stale   bool
	met     map[fleet.ClassID]bool
	scores  *scores // of its forecasts; nil: not judged now
	paired  *scores // of those that the champion makes too; nil: none yet
}

func newPlayer(name string, l *predictor.Learner) *player {
	return &player{name: name, learner: l, stale: true, met: map[fleet.ClassID]bool{}}
}

// label is a time that becomes known.
type label struct {
	at  time.Time
	end bool                   // of the request, else its first token
	of  []features.Observation // by player, with its own forecast
}

// request takes the next record: what became known before it is learned, then it is foretold.
func (c *contest) request(o *features.Observation) error {
	c.until(o.At)
	if c.err != nil {
		return c.err
	}
	own := make([]features.Observation, len(c.players))
	c.where.set(o)
	for i, p := range c.players {
		own[i] = *o
		x := &own[i]
		if o.Schema == "" {
			continue
		}
		if !p.met[o.Where.Class] { // with its prior, before anything is learned
			p.learner.Meet(o.Where.Class)
			p.met[o.Where.Class], p.stale = true, true
		}
		if p.stale {
			p.frozen, p.stale = p.learner.Freeze(), false
		}
		x.Said = p.frozen.Judge(&x.X, &x.Where, &x.Fore)
		for _, s := range []*scores{p.scores, p.paired} {
			if s != nil {
				s.add(x)
			}
		}
	}
	if o.TTFT > 0 {
		heap.Push(&c.open, label{at: o.At.Add(o.TTFT), of: own})
	}
	heap.Push(&c.open, label{at: o.At.Add(o.E2E), end: true, of: own})
	return nil
}

// until teaches everybody what became known by then.
func (c *contest) until(now time.Time) {
	for len(c.open) > 0 && !c.open[0].at.After(now) {
		c.teach(heap.Pop(&c.open).(label))
	}
}

// finish teaches what is still open.
func (c *contest) finish() error {
	for len(c.open) > 0 {
		c.teach(heap.Pop(&c.open).(label))
	}
	return c.err
}

func (c *contest) teach(l label) {
	for i := range l.of {
		p := c.players[i]
		if p.still {
			continue
		}
		if l.end {
			p.learner.End(&l.of[i])
		} else {
			p.learner.First(&l.of[i])
		}
		for fit := p.learner.Due(l.at); fit != nil; fit = p.learner.Due(l.at) {
			fit.Run()
			if err := p.learner.Adopt(fit); err != nil && c.err == nil {
				c.err = err
			}
		}
		p.stale = true
	}
}

// join adds a player, who knows nothing of the requests now open.
func (c *contest) join(p *player) {
	c.players = append(c.players, p)
}

// agenda is the labels to come, the earliest first.
type agenda []label

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push is for package heap.
func (a *agenda) Push(x any) { *a = append(*a, x.(label)) }

// Pop is for package heap.
func (a *agenda) Pop() any {
	old := *a
	n := len(old) - 1
	x := old[n]
	old[n] = label{}
	*a = old[:n]
	return x
}

// whereabouts numbers endpoints anew: numbers of instances begin again with every process that logs.
type whereabouts struct {
	slots     map[string]int32
	instances map[instance]uint64
}

type instance struct {
	name   string
	number uint64
	class  fleet.ClassID
}

func (w *whereabouts) set(o *features.Observation) {
	if w.slots == nil {
		w.slots, w.instances = map[string]int32{}, map[instance]uint64{}
	}
	if o.Where.Instance == 0 {
		return
	}
	slot, ok := w.slots[o.Picked]
	if !ok {
		slot = int32(len(w.slots))
		w.slots[o.Picked] = slot
	}
	key := instance{o.Picked, o.Where.Instance, o.Where.Class}
	n, ok := w.instances[key]
	if !ok {
		n = uint64(len(w.instances) + 1)
		w.instances[key] = n
	}
	o.Where.Slot, o.Where.Instance = slot, n
}
