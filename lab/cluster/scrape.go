package cluster

import (
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/engine"
)

// scrape has every engine write its metrics page.
func (s *sim) scrape() {
	if s.live == 0 && s.dry {
		return
	}
	pages := make([]fleet.Load, len(s.nodes))
	for i := range s.nodes {
		n := &s.nodes[i]
		s.advance(i)
		pages[i] = s.write(n)
	}
	s.pages = append(s.pages, pages)
	if s.cfg.ScrapeAge == 0 {
		s.page()
	} else {
		s.agenda.push(item{at: s.now + s.cfg.ScrapeAge, task: taskPage})
	}
	s.agenda.push(item{at: s.now + s.cfg.Scrape, task: taskScrape})
}

// known is what a page of vLLM carries.
const known = fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV | fleet.KnowBlocks | fleet.KnowPrefix | fleet.KnowTokens | fleet.KnowPreemptions

// write is an engine's page. A dead engine has none; a blind one repeats itself.
func (s *sim) write(n *node) fleet.Load {
	l := n.load
	if n.dead {
		l.Errors++
		l.Unreachable = true
		return l
	}
	l.Errors, l.Unreachable, l.Own = 0, false, n.open
	if n.blind {
		return l
	}
	var st engine.Stats
	n.Stats(&st)
	l.Known = known
	l.Waiting, l.Running = int32(st.Waiting), int32(st.Running)
	l.KVUsage, l.KVMax = float32(st.KVUsage), float32(st.KVUsage)
	l.Blocks, l.BlockSize = int32(st.Blocks), int32(st.BlockSize)
	l.Queries, l.Hits = float64(st.Queries), float64(st.Hits)
	l.Prompt, l.Generated, l.Preemptions = float64(st.PromptTokens), float64(st.GenerationTokens), float64(st.Preemptions)
	if slots := n.cfg.MaxLoRA; slots > 0 {
		l.Known |= fleet.KnowLoRA
		l.MaxLoRA = int32(slots)
		running, waiting := n.Adapters(nil, nil)
		l.RunningLoRA, l.WaitingLoRA = s.names(running), s.names(waiting)
	}
	return l
}

func (s *sim) names(adapters []int32) []string {
	var out []string
	for _, a := range adapters {
		if int(a) < len(s.adapters) {
			out = append(out, s.adapters[a])
		}
	}
	return out
}

// page has the router take in the oldest pages on their way.
func (s *sim) page() {
	pages := s.pages[0]
	s.pages = s.pages[1:]
	for i := range pages {
		l, n := &pages[i], &s.nodes[i]
		if l.Errors == 0 {
			l.At, l.ChangedAt = s.time(), s.time()
			if same(l, &n.load) {
				l.ChangedAt = n.load.ChangedAt
			}
			l.Restarts = n.load.Restarts
			if l.Prompt < n.load.Prompt || l.Generated < n.load.Generated {
				l.Restarts++
			}
		}
		n.load = *l
		s.fleet.SetLoad(n.ref, l)
		s.size(n)
	}
	if s.ticker == nil && s.pupil == nil && s.cfg.Ticker == nil {
		return
	}
	s.fleet.Snapshot(s.time(), &s.snap)
	if s.ticker != nil {
		s.ticker.Tick(s.time(), &s.snap)
	}
	if t := s.cfg.Ticker; t != nil {
		t.Tick(s.time(), &s.snap)
	}
	if s.pupil != nil {
		s.pupil.watch(&s.snap)
	}
}

// same reports whether two pages say the same of everything that moves in a working engine.
func same(a, b *fleet.Load) bool {
	return !b.At.IsZero() && a.Waiting == b.Waiting && a.Running == b.Running && a.KVUsage == b.KVUsage &&
		a.Queries == b.Queries && a.Prompt == b.Prompt && a.Generated == b.Generated && a.Preemptions == b.Preemptions
}

// sized is a belief that follows the sizes of the engines' caches.
type sized interface {
	SetCapacity(r fleet.Ref, blocks int)
}

func (s *sim) size(n *node) {
	if x, ok := s.prefixes.(sized); ok {
		if c := int(n.load.KVTokens()) / s.cfg.PrefixBlock; c != n.capacity {
			n.capacity = c
			x.SetCapacity(n.ref, c)
		}
	}
}
