package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"
	"unique"

	"github.com/presage-router/presage/datasets"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// example is one recorded request as the learner would have met it.
type example struct {
	obs      features.Observation // vector, class and labels; no forecast yet
	known    [2]int               // how many examples, in the order of becoming known, may be used for it
	inflight float64
}

// course is a file as a sequence of decisions. order[t] are the examples with a label of target t
// in the order in which these become known.
type course struct {
	examples []example
	order    [2][]int
}

var epoch = time.Unix(0, 0)

// withoutClock takes records of llm-d's router: each carries either TTFT or TPOT and the state of
// its endpoint, and no time. Example i may use the labels of those more than 2*running(i) before it.
func withoutClock(rows []datasets.Row) *course {
	c := new(course)
	var least [2]int
	class := unique.Make(fleet.Class{TP: 1})
	for i := range rows {
		r := &rows[i]
		ex := example{obs: record(r), inflight: float64(max(r.State.Running, 0))}
		o := &ex.obs
		o.Where = features.Where{Class: class, Slot: 0, Instance: 1}
		x := &o.X
		for f := range x {
			x[f] = float32(math.NaN())
		}
		hit := zeroNaN(r.State.HitShare)
		x[features.Prompt] = float32(r.Prompt)
		x[features.Uncached] = float32(float64(r.Prompt) * (1 - hit))
		o.HitTokens = int(float64(r.Prompt) * hit)
		waiting := max(r.State.Waiting, 0)
		x[features.Waiting], x[features.Running] = float32(waiting), float32(r.State.Running)
		x[features.Pending] = float32(waiting)
		x[features.Streams] = float32(max(0, r.State.Running-waiting))
		x[features.PendingUncached] = float32(max(r.State.PrefillTokens, 0))
		x[features.KVUsage] = float32(r.State.KV)
		t := 0
		if !datasets.Known(r.TTFT) {
			t = 1
		}
		least[t] = max(least[t], len(c.order[t])-2*max(r.State.Running, 0))
		ex.known[t], ex.known[1-t] = least[t], least[1-t]
		c.order[t] = append(c.order[t], len(c.examples))
		c.examples = append(c.examples, ex)
	}
	return c
}

// record is what a row says of its request.
func record(r *datasets.Row) features.Observation {
	o := features.Observation{
		API: request.Chat, Model: r.Model, Stream: true, Endpoint: r.Endpoint, Picked: r.Endpoint, Schema: features.Schema(),
		PromptTokens: r.Prompt, ExactPrompt: true, CachedTokens: r.Cached, OutputTokens: r.Output, MaxTokens: max(r.MaxTokens, 0),
		Propensity: 1, Cause: fleet.Complete, Status: 200,
		TTFT: span(r.TTFT), ITL: span(r.ITL), E2E: span(r.E2E), Said: features.Nothing(),
	}
	if r.Outcome == datasets.Failed {
		o.Cause, o.Status = fleet.UpstreamError, max(r.Code, 500)
	}
	return o
}

func span(seconds float64) time.Duration {
	if !(seconds > 0) || seconds > 1e6 {
		return 0
	}
	return time.Duration(seconds * 1e9)
}

func zeroNaN(v float64) float64 {
	if v != v {
		return 0
	}
	return v
}

// event is one thing the router hears.
type event struct {
	at   float64
	row  int
	kind int // 0 first token, 1 end
}

// withClock replays records of one run through the ledger.
func withClock(rows []datasets.Row) (*course, error) {
	slices.SortStableFunc(rows, func(a, b datasets.Row) int { return cmp.Compare(a.Arrival, b.Arrival) })
	var fl fleet.Fleet
	refs, err := join(&fl, rows)
	if err != nil {
		return nil, err
	}
	c := new(course)
	tickets := make([]fleet.Ticket, len(rows))
	var events []event // sorted, not yet happened
	push := func(e event) {
		i, _ := slices.BinarySearchFunc(events, e, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		for i < len(events) && events[i].at == e.at {
			i++
		}
		events = slices.Insert(events, i, e)
	}
	type held struct {
		endpoint string
		group    int
	}
	seen := map[held]bool{}
	var snap fleet.Snapshot
	var x []features.Vector
	var at []features.Where
	var hits []int32
	var labels [2][]labelled
	for i := range rows {
		r := &rows[i]
		now := epoch.Add(time.Duration(r.Arrival * 1e9))
		for len(events) > 0 && events[0].at <= r.Arrival {
			e := events[0]
			events = events[1:]
			when := epoch.Add(time.Duration(e.at * 1e9))
			if e.kind == 0 {
				tickets[e.row].FirstToken(when)
			} else {
				end(&rows[e.row], tickets[e.row], when)
			}
		}
		ref := refs[r.Endpoint]
		scraped(&fl, ref, r, now)
		fl.Snapshot(now, &snap)
		if len(x) != len(snap.States) {
			x, at, hits = make([]features.Vector, len(snap.States)), make([]features.Where, len(snap.States)), make([]int32, len(snap.States))
		}
		req := request.Request{PromptTokens: r.Prompt, MaxTokens: max(r.MaxTokens, 0), MediaUnits: max(r.Images, 0)}
		features.Extract(x, at, &req, &snap, hits)
		k := slices.IndexFunc(snap.States, func(s fleet.State) bool { return s.Instance == ref.Instance })
		cached := 0
		if key := (held{r.Endpoint, r.Group}); r.GroupTokens > 0 {
			if seen[key] {
				cached = min(r.GroupTokens/kvBlock*kvBlock, r.Prompt-1)
			}
			seen[key] = true
		}
		ex := example{obs: record(r), inflight: float64(snap.States[k].Requests)}
		o := &ex.obs
		o.At, o.X, o.Where, o.HitTokens = now, x[k], at[k], cached
		o.X[features.Uncached] = float32(r.Prompt - cached)
		contextOf(&o.X, &snap.States[k], r)
		ok := false
		if tickets[i], ok = fl.Begin(now, ref, fleet.Work{Prompt: int64(r.Prompt), Cached: int64(cached), Choices: 1}); !ok {
			return nil, fmt.Errorf("line %d: endpoint %q left", r.Line, r.Endpoint)
		}
		n := len(c.examples)
		if datasets.Known(r.TTFT) {
			push(event{r.Arrival + r.TTFT, i, 0})
			if o.TTFT > 0 {
				labels[0] = append(labels[0], labelled{r.Arrival + r.TTFT, n})
			}
		}
		if datasets.Known(r.E2E) {
			push(event{r.Arrival + r.E2E, i, 1})
			if o.ITL > 0 {
				labels[1] = append(labels[1], labelled{r.Arrival + r.E2E, n})
			}
		}
		c.examples = append(c.examples, ex)
	}
	for t := range labels {
		l := labels[t]
		slices.SortStableFunc(l, func(a, b labelled) int { return cmp.Compare(a.at, b.at) })
		for _, e := range l {
			c.order[t] = append(c.order[t], e.example)
		}
		for i := range c.examples {
			k, _ := slices.BinarySearchFunc(l, rows[i].Arrival, func(e labelled, at float64) int {
				if e.at <= at {
					return -1
				}
				return 1
			})
			c.examples[i].known[t] = k
		}
	}
	return c, nil
}

type labelled struct {
	at      float64
	example int
}

const kvBlock = 16

// end releases a request; the tokens of its answer are told at once, since when each came is not on
// record and guessing it from the whole would use what was not known.
func end(r *datasets.Row, t fleet.Ticket, when time.Time) {
	t.Tokens(when, r.Output)
	t.Done(when)
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

// join makes the endpoints that the rows name.
func join(fl *fleet.Fleet, rows []datasets.Row) (map[string]fleet.Ref, error) {
	var eps []*fleet.Endpoint
	named := map[string]bool{}
	for i := range rows {
		if named[rows[i].Endpoint] {
			continue
		}
		named[rows[i].Endpoint] = true
		n := len(eps)
		eps = append(eps, &fleet.Endpoint{
			Name: fmt.Sprintf("e-%s", rows[i].Endpoint), Model: rows[i].Model, GPU: rows[i].Hardware, TP: 1,
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 8000),
		})
	}
	ch, err := fl.Sync(epoch, eps)
	if err != nil {
		return nil, err
	}
	refs := make(map[string]fleet.Ref, len(eps))
	for _, r := range ch.Added {
		refs[r.Endpoint.Name[len("e-"):]] = r
	}
	return refs, nil
}

// scraped sets what the record says was scraped last.
func scraped(fl *fleet.Fleet, ref fleet.Ref, r *datasets.Row, now time.Time) {
	s := &r.State
	l := new(fleet.Load)
	if s.Waiting >= 0 {
		l.Waiting, l.Known = int32(s.Waiting), l.Known|fleet.KnowWaiting
	}
	if s.Running >= 0 {
		l.Running, l.Known = int32(s.Running), l.Known|fleet.KnowRunning
	}
	if datasets.Known(s.KV) {
		l.KVUsage, l.Known = float32(s.KV), l.Known|fleet.KnowKV
	}
	if l.Known == 0 {
		return
	}
	l.At = now.Add(-span(zeroNaN(s.ScrapeAge)))
	l.Own = int32(l.Running + l.Waiting)
	fl.SetLoad(ref, l)
}
