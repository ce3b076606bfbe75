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
	for i := range s.nodes {
		s.advance(i)
	}
	pages := make([]fleet.Load, 0, len(s.fronts)*len(s.nodes)) // by router and engine
	for _, f := range s.fronts {
		for i := range f.views {
			pages = append(pages, s.write(&s.nodes[i], &f.views[i]))
		}
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

// write is an engine's page as a router gets it. A dead engine has none; a blind one repeats itself.
func (s *sim) write(n *node, v *view) fleet.Load {
	l := v.load
	if n.dead {
		l.Errors++
		l.Unreachable = true
		return l
	}
	l.Errors, l.Unreachable, l.Own = 0, false, v.open
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

// page has the routers take in the oldest pages on their way.
func (s *sim) page() {
	pages := s.pages[0]
	s.pages = s.pages[1:]
	for _, f := range s.fronts {
		for i := range f.views {
			l, v := &pages[0], &f.views[i]
			pages = pages[1:]
			if l.Errors == 0 {
				l.At, l.ChangedAt = s.time(), s.time()
				if same(l, &v.load) {
					l.ChangedAt = v.load.ChangedAt
				}
				l.Restarts = v.load.Restarts
				if l.Prompt < v.load.Prompt || l.Generated < v.load.Generated {
					l.Restarts++
				}
			}
			v.load = *l
			f.fleet.SetLoad(v.ref, l)
			s.size(f, v)
		}
		s.tick(f)
	}
}

// same reports whether two pages say the same of everything that moves in a working engine.
func same(a, b *fleet.Load) bool {
	return !b.At.IsZero() && a.Waiting == b.Waiting && a.Running == b.Running && a.KVUsage == b.KVUsage &&
		a.Queries == b.Queries && a.Prompt == b.Prompt && a.Generated == b.Generated && a.Preemptions == b.Preemptions
}
