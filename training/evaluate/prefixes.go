package evaluate

import "github.com/presage-router/presage/datasets"

// kvBlock is the block of vLLM's prefix cache, in tokens.
const kvBlock = 16

// prefixes is what a router would believe cached where: the shared part of a prefix group once a
// request of the group was sent there, and the conversation so far of a session. What the engine
// reported afterwards is not looked at. In a pool whose members the file does not name nothing is
// believed: a session seen before may have been on any of them.
type prefixes struct {
	groups   map[place]bool
	sessions map[session]int // tokens of the longest conversation sent
}

type place struct {
	endpoint string
	group    int
}

type session struct{ endpoint, id string }

func newPrefixes() *prefixes {
	return &prefixes{groups: map[place]bool{}, sessions: map[session]int{}}
}

// match returns the prompt tokens of a request believed cached on its endpoint, and notes that it
// was sent there.
func (p *prefixes) match(r *datasets.Row) (cached int) {
	if r.Endpoint == "" && r.Replicas > 1 {
		return 0
	}
	if key := (place{r.Endpoint, r.Group}); r.GroupTokens > 0 {
		if p.groups[key] {
			cached = r.GroupTokens
		}
		p.groups[key] = true
	}
	if key := (session{r.Endpoint, r.Session}); r.Session != "" {
		cached = max(cached, p.sessions[key])
		p.sessions[key] = max(p.sessions[key], r.Prompt)
	}
	return max(0, min(cached, r.Prompt-1)/kvBlock*kvBlock) // the last token is always computed
}
