package evaluate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

var epoch = time.Unix(0, 0)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * 1e9)) }

// ledger replays one run through the router's own books.
type ledger struct {
	fleet   fleet.Fleet
	refs    map[string]fleet.Ref
	rows    []datasets.Row
	tickets []fleet.Ticket
	events  []event // sorted by time, not yet happened
	snap    fleet.Snapshot
	x       []features.Vector
	where   []features.Where
	hits    []int32
}

// event is one thing the router hears.
type event struct {
	at  float64
	row int
	end bool // of the answer; else its first token
}

// label is a time that becomes known.
type label struct {
	at      float64
	example int
}

// withClock replays the rows of one run. held is what endpoints are believed to have cached; it
// outlives runs, as the caches did.
func withClock(rows []datasets.Row, held *prefixes) (*course, error) {
	slices.SortStableFunc(rows, func(a, b datasets.Row) int { return cmp.Compare(a.Arrival, b.Arrival) })
	l := ledger{rows: rows, tickets: make([]fleet.Ticket, len(rows))}
	if err := l.join(); err != nil {
		return nil, err
	}
	c := new(course)
	var labels [2][]label
	for i := range rows {
		r := &rows[i]
		l.hear(r.Arrival)
		cached := held.match(r)
		ex, err := l.begin(i, cached)
		if err != nil {
			return nil, err
		}
		if datasets.Known(r.TTFT) {
			l.push(event{at: r.Arrival + r.TTFT, row: i})
		}
		l.push(event{at: r.Arrival + r.E2E, row: i, end: true})
		if ex.obs.TTFT > 0 {
			labels[0] = append(labels[0], label{r.Arrival + r.TTFT, len(c.examples)})
		}
		if ex.obs.ITL > 0 {
			labels[1] = append(labels[1], label{r.Arrival + r.E2E, len(c.examples)})
		}
		if ex.obs.TTFT > 0 || ex.obs.ITL > 0 { // else it only weighs
			c.examples = append(c.examples, ex)
		}
	}
	c.settle(&labels)
	return c, nil
}

// settle finds how many labels are known at each decision.
func (c *course) settle(labels *[2][]label) {
	for t, known := range labels {
		slices.SortStableFunc(known, func(a, b label) int { return cmp.Compare(a.at, b.at) })
		for _, y := range known {
			c.order[t] = append(c.order[t], y.example)
		}
		for i := range c.examples {
			ex := &c.examples[i]
			ex.known[t], _ = slices.BinarySearchFunc(known, ex.at, func(y label, now float64) int {
				if y.at <= now {
					return -1
				}
				return 1
			})
		}
	}
}

// join makes the endpoints that the rows name; a pool whose members are not named is one endpoint.
func (l *ledger) join() error {
	var eps []*fleet.Endpoint
	l.refs = map[string]fleet.Ref{}
	for i := range l.rows {
		r := &l.rows[i]
		if _, ok := l.refs[r.Endpoint]; ok {
			continue
		}
		n := len(eps)
		if n > maxEndpoints {
			return fmt.Errorf("line %d: endpoint %q: more than %d endpoints", r.Line, r.Endpoint, maxEndpoints)
		}
		l.refs[r.Endpoint] = fleet.Ref{Slot: n}
		eps = append(eps, &fleet.Endpoint{
			Name: fmt.Sprintf("e%d", n), Model: r.Model, GPU: r.Hardware, TP: 1,
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 8000),
		})
	}
	ch, err := l.fleet.Sync(epoch, eps)
	if err != nil {
		return err
	}
	byName := map[string]fleet.Ref{}
	for _, ref := range ch.Added {
		byName[ref.Endpoint.Name] = ref
	}
	for name, ref := range l.refs {
		l.refs[name] = byName[fmt.Sprintf("e%d", ref.Slot)]
	}
	return nil
}

const maxEndpoints = 1 << 12

// push keeps an event for its time. Of events at one time the earlier pushed comes first.
func (l *ledger) push(e event) {
	i, _ := slices.BinarySearchFunc(l.events, e.at, func(a event, now float64) int {
		if a.at <= now {
			return -1
		}
		return 1
	})
	l.events = slices.Insert(l.events, i, e)
}

// hear brings the ledger to a time.
func (l *ledger) hear(now float64) {
	n := 0
	for ; n < len(l.events) && l.events[n].at <= now; n++ {
		e := l.events[n]
		if !e.end {
			l.tickets[e.row].FirstToken(at(e.at))
			continue
		}
		// The tokens of an answer are told at its end: when each came is not on record, and guessing
		// it from the whole would use what was not known.
		l.tickets[e.row].Tokens(at(e.at), l.rows[e.row].Output)
		l.tickets[e.row].Done(at(e.at))
	}
	l.events = slices.Delete(l.events, 0, n)
}

// begin makes the example of row i at its arrival and reserves its load.
func (l *ledger) begin(i, cached int) (ex example, err error) {
	r := &l.rows[i]
	now := at(r.Arrival)
	ref := l.refs[r.Endpoint]
	l.scraped(ref, r, now)
	l.fleet.Snapshot(now, &l.snap)
	if n := len(l.snap.States); len(l.x) != n {
		l.x, l.where, l.hits = make([]features.Vector, n), make([]features.Where, n), make([]int32, n)
	}
	req := request.Request{PromptTokens: r.Prompt, MaxTokens: max(r.MaxTokens, 0), MediaUnits: max(r.Images, 0)}
	features.Extract(l.x, l.where, &req, &l.snap, l.hits)
	k := slices.IndexFunc(l.snap.States, func(s fleet.State) bool { return s.Instance == ref.Instance })
	ex = example{obs: record(r), inflight: float64(l.snap.States[k].Requests), at: r.Arrival}
	o := &ex.obs
	o.At, o.X, o.Where, o.HitTokens = now, l.x[k], l.where[k], cached
	o.X[features.Uncached] = float32(r.Prompt - cached)
	contextOf(&o.X, &l.snap.States[k], r)
	ticket, ok := l.fleet.Begin(now, ref, fleet.Work{Prompt: int64(r.Prompt), Cached: int64(cached), Choices: 1})
	if !ok {
		return ex, fmt.Errorf("line %d: endpoint %q is not in the fleet", r.Line, r.Endpoint)
	}
	l.tickets[i] = ticket
	return ex, nil
}

// contextOf takes the context of the streaming answers from the record, where it has it: a router
// counts their tokens as they come. From it and the prompts follows the step time.
func contextOf(x *features.Vector, s *fleet.State, r *datasets.Row) {
	if r.State.ContextTokens < 0 {
		return
	}
	x[features.Context] = float32(r.State.ContextTokens)
	if s.Streaming == 0 {
		x[features.Context] = 0
	}
	if generated := float64(r.State.ContextTokens) - float64(s.Context); generated >= 4 && s.Streaming > 0 {
		x[features.StepTime] = float32(s.StreamTime.Seconds() / generated)
	}
}

// scraped sets what the record says was scraped last.
func (l *ledger) scraped(ref fleet.Ref, r *datasets.Row, now time.Time) {
	s := &r.State
	load := new(fleet.Load)
	if s.Waiting >= 0 {
		load.Waiting, load.Known = int32(s.Waiting), load.Known|fleet.KnowWaiting
	}
	if s.Running >= 0 {
		load.Running, load.Known = int32(s.Running), load.Known|fleet.KnowRunning
	}
	if datasets.Known(s.KV) {
		load.KVUsage, load.Known = float32(s.KV), load.Known|fleet.KnowKV
	}
	if load.Known == 0 {
		return
	}
	load.At = now.Add(-span(zeroNaN(s.ScrapeAge)))
	load.Own = load.Running + load.Waiting
	l.fleet.SetLoad(ref, load)
}
