package workload

import "math"

// charsPerToken converts the sizes of recorded messages.
const charsPerToken = 4

// transcript is the text of one recorded session, as far as the trace tells what is shared:
//   - blocks with ids: equal ids, equal text;
//   - messages with ids: their sizes in characters become tokens, what the prompt has beyond them
//     (tools and the like) comes first, is the same for the same tools, and as long for all prompts with
//     the same first message;
//   - prefix groups: the group's text, then text of the request's own;
//   - sessions without either: a prompt at least as long as all that was said before continues it,
//     a shorter one starts anew;
//   - none of these: text of the request's own.
type transcript struct {
	text chain
}

// talk finds the transcript of a request: that of its session, else a new one.
func (r *replay) talk(p *placed) *transcript {
	if p.row.Session == "" {
		return &transcript{}
	}
	if t, ok := r.talks[p.row.Session]; ok {
		return t
	}
	t := &transcript{}
	r.talks[p.row.Session] = t
	return t
}

// request returns the blocks of one request, prompt and answer.
func (t *transcript) request(r *replay, p *placed) []uint64 {
	row := &p.row
	own := nameOf(r.seed, r.t.Class+" trace", p.number)
	c := newChain(nameOf(0, r.t.Model, 0))
	switch {
	case row.BlockTokens > 0:
		c.grow(p.prompt + p.output)
		for _, id := range row.Blocks {
			c.append(nameOf(0, "block", int(id)), min(row.BlockTokens, p.prompt-c.tokens))
		}
	case len(row.Messages) > 0:
		c.grow(p.prompt + p.output)
		r.messages(&c, p)
	case row.GroupTokens > 0 && row.GroupTokens <= p.prompt:
		c.append(nameOf(0, "group", row.Group), row.GroupTokens)
		c.append(mix(own), p.prompt-c.tokens)
	case row.Session != "" && t.text.tokens > 0 && p.prompt >= t.text.tokens:
		c = t.text.fork()
		c.append(mix(own), p.prompt-c.tokens)
	default:
		c.append(mix(own), p.prompt)
	}
	c.append(mix(own+1), p.output)
	t.text = c
	return c.view()
}

// messages appends a prompt of messages.
func (r *replay) messages(c *chain, p *placed) {
	row := &p.row
	tokens := func(chars int) int { return int(math.Round(float64(chars) / charsPerToken)) }
	said := 0
	for _, m := range row.Messages {
		said += tokens(m.Chars)
	}
	kind := nameOf(0, "tools "+row.Tools, int(row.Messages[0].ID))
	hidden, ok := r.hidden[kind]
	if !ok {
		hidden = max(0, p.prompt-said)
		r.hidden[kind] = hidden
	}
	c.append(nameOf(0, "tools "+row.Tools), min(hidden, p.prompt))
	for i, m := range row.Messages {
		n := tokens(m.Chars)
		if i == len(row.Messages)-1 {
			n = p.prompt - c.tokens // the estimate's error
		}
		c.append(nameOf(0, "message", int(m.ID)), min(n, p.prompt-c.tokens))
	}
}
