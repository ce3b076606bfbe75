package cluster

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// counter counts observations, as a learner in its seat.
type counter struct {
	n     int
	bad   []string
	tried map[string]int
}

func (c *counter) Observe(o *features.Observation) {
	c.n++
	if c.tried == nil {
		c.tried = map[string]int{}
	}
	c.tried[o.Endpoint]++
	if o.Cause == fleet.Complete && (o.TTFT <= 0 || o.E2E < o.TTFT || o.OutputTokens < 1 || o.Status != 200) {
		c.bad = append(c.bad, fmt.Sprintf("%+v", *o))
	}
}

// text is a tree of conversations: blocks of the i-th turn of a conversation continue those before.
func text(group, member uint64, shared, tokens int) []uint64 {
	var out []uint64
	h := group*1000003 + 7
	for i := range tokens / blockTokens {
		if i == shared/blockTokens {
			h ^= member * 0x9e3779b97f4a7c15
		}
		h = h*6364136223846793005 + 1442695040888963407
		out = append(out, h)
	}
	return out
}

// turns yields further turns of one conversation.
type turns struct {
	group, member uint64
	shared        int
	left          int
	size          int
	think         time.Duration
	rng           *rand.Rand
}

func (s *turns) Next(j *Job) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	ask, answer := 10+s.rng.IntN(200), 1+s.rng.IntN(60)
	*j = Job{
		At: s.think, Session: fmt.Sprintf("s%d-%d", s.group, s.member), PromptTokens: s.size + ask, OutputTokens: answer,
		Blocks: text(s.group, s.member, s.shared, s.size+ask+answer), SLO: request.SLO{TTFT: time.Second},
	}
	s.size += ask + answer
	return true
}

// drawn is a random workload; equal seeds give equal jobs.
func drawn(seed uint64, n int) Source {
	rng := rand.New(rand.NewPCG(seed, 5))
	src := &Slice{}
	at := time.Duration(0)
	for i := range n {
		at += time.Duration(rng.ExpFloat64() * 3e7)
		group := uint64(rng.IntN(4))
		size := 16 * (4 + 20*int(group))
		s := &turns{group: group, member: uint64(i), shared: size, size: size, left: 1 + rng.IntN(4), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		s.think = time.Duration(rng.IntN(2)) * 300 * time.Millisecond
		var j Job
		s.Next(&j)
		j.At, j.Then = at, s
		j.Adapter = int32(rng.IntN(3))
		switch rng.IntN(8) {
		case 0:
			j.CancelAfter = 1 + rng.IntN(20)
		case 1:
			j.Timeout = time.Duration(1+rng.IntN(300)) * time.Millisecond
		}
		src.Jobs = append(src.Jobs, j)
	}
	return src
}

func drawConfig(t *rapid.T, nodes []Node) Config {
	delay := func(name string) time.Duration {
		return rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 7 * time.Millisecond}).Draw(t, name)
	}
	cfg := Config{
		Nodes: nodes, Seed: rapid.Uint64().Draw(t, "seed"), Adapters: 2,
		Uplink: delay("uplink"), Dispatch: delay("dispatch"), Return: delay("return"), ScrapeAge: delay("age"),
		Scrape:   rapid.SampledFrom([]time.Duration{0, -1, 50 * time.Millisecond}).Draw(t, "scrape"),
		Duration: rapid.SampledFrom([]time.Duration{0, 800 * time.Millisecond}).Draw(t, "duration"),
	}
	for range rapid.IntRange(0, 6).Draw(t, "events") {
		cfg.Events = append(cfg.Events, Event{
			At:      time.Duration(rapid.IntRange(0, 3000).Draw(t, "at")) * time.Millisecond,
			Nodes:   []int{rapid.IntRange(0, len(nodes)-1).Draw(t, "node")},
			Kind:    EventKind(rapid.IntRange(0, int(Blind)).Draw(t, "event")),
			Factor:  rapid.Float64Range(0.1, 1).Draw(t, "factor"),
			Length:  time.Duration(rapid.IntRange(0, 500).Draw(t, "length")) * time.Millisecond,
			Profile: engine.Sync(),
		})
	}
	return cfg
}

// TestRunsAddUp: whatever happens on the way, every request ends once, in the records, in the ledger
// and at the learner; and the same run gives the same bytes, with and without macro-steps.
func TestRunsAddUp(t *testing.T) {
	nodes := h100s(t, 3)
	for i := range nodes {
		nodes[i].Engine.MaxLoRA = 2
		nodes[i].Engine.Blocks = 400
		nodes[i].Engine.MaxSeqs = 8
	}
	nodes[2].Engine.Noise = 0.1
	names := []string{"round-robin", "llmd-weighted", "least-request", "random", "smg-cache-aware", "apart"}
	rapid.Check(t, func(rt *rapid.T) {
		cfg := drawConfig(rt, nodes)
		name := rapid.SampledFrom(names).Draw(rt, "policy")
		seed, n := rapid.Uint64().Draw(rt, "workload"), rapid.IntRange(1, 40).Draw(rt, "conversations")
		run := func(single bool) string {
			cfg.SingleStep = single
			cfg.Policy = &apart{}
			if name != "apart" {
				cfg.Policy = policy(t, name)
			}
			seat := &counter{}
			cfg.Observer = seat
			s, err := newSim(cfg, drawn(seed, n), nil)
			if err != nil {
				rt.Fatal(err)
			}
			var log bytes.Buffer
			var numbers = map[uint64]bool{}
			s.sink = func(r *Record) {
				fmt.Fprintf(&log, "%+v\n", *r)
				if numbers[r.Number] {
					rt.Fatalf("request %d ended twice", r.Number)
				}
				numbers[r.Number] = true
				if r.Cause == fleet.Complete && (r.TTFT <= 0 || r.E2E < r.TTFT || r.CachedTokens < 0 || r.CachedTokens >= r.PromptTokens) {
					rt.Fatalf("%+v", *r)
				}
			}
			s.run()
			rep := s.report()
			if s.err != nil {
				rt.Fatal(s.err)
			}
			fmt.Fprintf(&log, "%+v\n", *rep)
			if got := rep.Complete + rep.Refused + rep.Failed + rep.Left; got != rep.Requests || len(numbers) != int(got) || s.live != 0 {
				rt.Fatalf("%+v: %d ended, %d records, %d alive", *rep, got, len(numbers), s.live)
			}
			if seat.n != int(rep.Requests-rep.Refused) || len(seat.bad) > 0 {
				rt.Fatalf("%d observations of %d requests, bad: %v", seat.n, rep.Requests, seat.bad)
			}
			var snap fleet.Snapshot
			s.fronts[0].fleet.Snapshot(s.time(), &snap)
			for i, st := range snap.States {
				if st.Requests != 0 || st.Uncached != 0 || st.Context != 0 || s.fronts[0].views[i].open != 0 {
					rt.Fatalf("%s: ledger %+v, %d open", st.Name, st.Inflight, s.fronts[0].views[i].open)
				}
			}
			for s.step() { // what is still on its way
			}
			for _, tr := range s.trips {
				if tr.refs > 0 {
					rt.Fatalf("trip %+v is not over", tr.job)
				}
			}
			return log.String()
		}
		first := run(false)
		if diff := cmp.Diff(first, run(false)); diff != "" {
			rt.Fatalf("the same run again:\n%s", diff)
		}
		if diff := cmp.Diff(first, run(true)); diff != "" {
			rt.Fatalf("without macro-steps:\n%s", diff)
		}
	})
}

// apart prefills on one engine and decodes on another.
type apart struct{ n int }

func (*apart) Name() string { return "apart" }

func (a *apart) Route(q *router.Query, d *router.Decision) error {
	a.n++
	d.Index, d.Propensity = a.n%len(q.Keep), 1
	if a.n%3 > 0 {
		d.Prefill = (d.Index + 1) % len(q.Keep)
	}
	return nil
}
