package workload

import (
	"fmt"
	"math/rand/v2"
)

const maxLevels = 4 // of prefixes

// draws are the random streams of a class, one for each aspect, or those of one of its users.
type draws struct {
	prompt, output, user, cancel *rand.Rand
	prefix                       []*picker
	adapter                      *picker
	closed                       bool // of a closed-loop user
}

func (c *class) newDraws(who string) *draws {
	aspect := func(name string) *rand.Rand { return stream(c.seed, c.t.Class, who, name) }
	d := &draws{prompt: aspect("prompt"), output: aspect("output"), user: aspect("user"), cancel: aspect("cancel"), closed: who != "all"}
	share := c.draws // the weights of zipf are the same for all
	for i, p := range c.t.Prefix {
		if share != nil {
			d.prefix = append(d.prefix, share.prefix[i].with(aspect(fmt.Sprint("prefix", i))))
		} else {
			d.prefix = append(d.prefix, newPicker(p.Pick, p.Groups, aspect(fmt.Sprint("prefix", i))))
		}
	}
	if c.t.Adapters > 0 {
		if share != nil {
			d.adapter = share.adapter.with(aspect("adapter"))
		} else {
			d.adapter = newPicker(c.t.AdapterPick, c.t.Adapters, aspect("adapter"))
		}
	}
	return d
}

// groups draws the group of each level of prefixes.
func (d *draws) groups() []int {
	g := make([]int, len(d.prefix))
	for i, p := range d.prefix {
		g[i] = p.next()
	}
	return g
}

// prefixKey names a group's text: groups and renewals of each level, and the adapter.
type prefixKey struct {
	group   [maxLevels]int
	epoch   [maxLevels]int64
	adapter int32
}

// texts makes and keeps the shared beginnings.
type texts struct {
	t      *Traffic
	seed   uint64
	cached map[prefixKey]*chain
	epoch  [maxLevels]int64
}

// begin returns the text that a request starts with.
func (x *texts) begin(groups []int, adapter int32, epoch [maxLevels]int64) chain {
	if epoch != x.epoch {
		clear(x.cached) // renewed texts never come back
		x.epoch = epoch
	}
	key := prefixKey{adapter: adapter}
	text := newChain(nameOf(0, x.t.Model, int(adapter)))
	for i, g := range groups {
		key.group[i], key.epoch[i] = g+1, epoch[i]
		if c, ok := x.cached[key]; ok {
			text = c.fork()
			continue
		}
		p := &x.t.Prefix[i]
		owner := x.t.Class
		if p.Text != "" {
			owner = "text " + p.Text
		}
		name := nameOf(x.seed, owner, append([]int{i, int(epoch[i])}, groups[:i+1]...)...)
		tokens := int(p.Tokens.Sample(stream(x.seed, owner, "prefix tokens", fmt.Sprint(groups[:i+1]))))
		text = text.fork()
		text.append(name, tokens)
		kept := text.fork()
		x.cached[key] = &kept
	}
	return text.fork()
}

// nameOf names a piece of text.
func nameOf(seed uint64, label string, numbers ...int) uint64 {
	h := mix(seed)
	for i := range len(label) {
		h = mix(h ^ uint64(label[i]))
	}
	h = mix(h + boundary)
	for _, n := range numbers {
		h = mix(h + uint64(n) + 1)
	}
	return h
}
