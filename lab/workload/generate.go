package workload

import (
	"fmt"
	"strconv"
	"time"

	"github.com/presage-router/presage/lab/cluster"
)

// Options are what a run adds to a scenario.
type Options struct {
	Seed uint64
	Load float64 // multiplies arrival rates, burst sizes, users and trace speeds; 0: 1
	// Trace is a file to replay by every traffic that replays a trace without naming its file.
	Trace string
}

// Source makes the jobs of one run. Sources made with equal options yield equal jobs; each run needs
// one of its own. Trace files are read here.
func (s *Scenario) Source(o Options) (cluster.Source, error) {
	if o.Load == 0 {
		o.Load = 1
	}
	if !(o.Load > 0 && o.Load <= maxLoad) {
		return nil, fmt.Errorf("%s: load %v: not above 0 and at most %v", s.Name, o.Load, maxLoad)
	}
	m := &merged{}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		until := t.Until
		if until == 0 {
			until = s.Duration
		}
		if t.Trace != nil {
			src, err := s.replay(t, until, o)
			if err != nil {
				return nil, err
			}
			m.add(src)
			continue
		}
		m.add(newClass(t, until, o))
	}
	return m, nil
}

const maxLoad = 1000.0

// merged yields the jobs of several sources in order of time.
type merged struct {
	sources []cluster.Source
	heads   []cluster.Job
	live    []bool
}

func (m *merged) add(s cluster.Source) {
	var j cluster.Job
	ok := s.Next(&j)
	m.sources, m.heads, m.live = append(m.sources, s), append(m.heads, j), append(m.live, ok)
}

// Next yields the earliest job of all sources, of the first source among equals.
func (m *merged) Next(j *cluster.Job) bool {
	best := -1
	for i := range m.heads {
		if m.live[i] && (best < 0 || m.heads[i].At < m.heads[best].At) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	*j = m.heads[best]
	m.heads[best] = cluster.Job{}
	m.live[best] = m.sources[best].Next(&m.heads[best])
	return true
}

// class yields the requests of one generated class of traffic.
type class struct {
	t     *Traffic
	seed  uint64
	load  float64
	procs []times
	user  []bool // process i brings users, not requests
	due   []time.Duration
	live  []bool
	draws *draws
	texts texts
	n     int // arrivals so far
}

func newClass(t *Traffic, until time.Duration, o Options) *class {
	c := &class{t: t, seed: o.Seed, load: o.Load}
	c.texts = texts{t: t, seed: o.Seed, cached: map[prefixKey]*chain{}}
	c.draws = c.newDraws("all")
	for i := range t.Arrivals {
		a := &t.Arrivals[i]
		var p times
		if a.Kind == "closed" {
			p = a.joins(o.Load, t.From, until)
		} else {
			p = a.open(o.Load, t.From, until, stream(o.Seed, t.Class, "arrivals", fmt.Sprint(i)))
		}
		at, ok := p.next()
		c.procs, c.user = append(c.procs, p), append(c.user, a.Kind == "closed")
		c.due, c.live = append(c.due, at), append(c.live, ok)
	}
	return c
}

// Next yields the next arrival: a request, the beginning of a conversation, or a user's first request.
func (c *class) Next(j *cluster.Job) bool {
	best := -1
	for i := range c.due {
		if c.live[i] && (best < 0 || c.due[i] < c.due[best]) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	at := c.due[best]
	c.due[best], c.live[best] = c.procs[best].next()
	number := c.n
	c.n++
	if c.user[best] {
		u := &user{c: c, draws: c.newDraws(fmt.Sprint("user", number)), think: &c.t.Arrivals[best].Think, rounds: c.t.Arrivals[best].Rounds, number: number}
		u.Next(j)
		j.At, j.Then = at, u
		return true
	}
	c.first(j, at, c.draws, number, 0)
	j.At = at
	return true
}

// first fills in a first request; round numbers the conversations of one user.
func (c *class) first(j *cluster.Job, at time.Duration, d *draws, number, round int) {
	t := c.t
	t.label(j)
	if t.Adapters > 0 {
		j.Adapter = int32(1 + d.adapter.next())
	}
	groups := d.groups()
	text := c.texts.begin(groups, j.Adapter, c.epochs(at))
	prompt, output := t.Prompt.Tokens(d.prompt), c.output(d)
	id := nameOf(c.seed, t.Class, number, round)
	if d.closed {
		id = nameOf(c.seed, t.Class+" user", number, round)
	}
	text.grow(prompt + output)
	text.append(mix(id), prompt)
	j.PromptTokens, j.OutputTokens = text.tokens, output
	text.append(mix(id+1), output)
	j.Blocks = text.view()
	c.cancel(j, d)
	if i := t.tenantLevel(); i >= 0 {
		j.Tenant = fmt.Sprintf("%s-%d", t.Class, groups[i])
	}
	switch {
	case t.Session != nil:
		j.Session = fmt.Sprintf("%s-%d-%d", t.Class, number, round)
	case t.Users > 0:
		j.Session = fmt.Sprintf("%s-%s-%d", t.Class, dashed(groups), d.user.IntN(t.Users))
	case d.closed:
		j.Session = fmt.Sprintf("%s-%d", t.Class, number)
	}
	if t.Session != nil {
		v := &conversation{c: c, id: id, text: text, like: *j, rng: stream(c.seed, t.Class, "session", fmt.Sprint(number), fmt.Sprint(round))}
		v.left = t.Session.Turns.Tokens(v.rng) - 1
		if v.left > 0 {
			j.Then = v
		}
	}
}

// output draws the length of an answer, within the cap.
func (c *class) output(d *draws) int { return c.t.capped(c.t.Output.Tokens(d.output)) }

// label fills in what all requests of the class carry.
func (t *Traffic) label(j *cluster.Job) {
	j.Model, j.Class, j.Priority, j.SLO, j.MaxTokens, j.Timeout = t.Model, t.Class, t.Priority, t.SLO, t.MaxTokens, t.Timeout
}

// capped is an answer's length within the cap that clients send.
func (t *Traffic) capped(output int) int {
	if t.MaxTokens > 0 {
		return min(output, t.MaxTokens)
	}
	return output
}

func (c *class) cancel(j *cluster.Job, d *draws) {
	if c.t.CancelShare > 0 && d.cancel.Float64() < c.t.CancelShare {
		j.CancelAfter = c.t.CancelTokens.Tokens(d.cancel)
	}
}

// epochs counts, for each level of prefixes, how often its texts have been renewed.
func (c *class) epochs(at time.Duration) [maxLevels]int64 {
	var e [maxLevels]int64
	for i, p := range c.t.Prefix {
		if p.Renew > 0 {
			e[i] = int64((at - c.t.From) / p.Renew)
		}
	}
	return e
}

// tenantLevel is the level of prefixes whose groups are tenants, or -1.
func (t *Traffic) tenantLevel() int {
	for i, p := range t.Prefix {
		if p.Tenants {
			return i
		}
	}
	return -1
}

// dashed is 3-17 for the groups 3 and 17.
func dashed(groups []int) string {
	var b []byte
	for i, g := range groups {
		if i > 0 {
			b = append(b, '-')
		}
		b = strconv.AppendInt(b, int64(g), 10)
	}
	return string(b)
}

var (
	_ cluster.Source = (*merged)(nil)
	_ cluster.Source = (*class)(nil)
)
