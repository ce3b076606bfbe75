package oracle

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

func h100(t testing.TB) engine.Config { return hardware(t, "H100") }

func hardware(t testing.TB, gpu string) engine.Config {
	t.Helper()
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	c, err := table.Find(gpu, "llama-3.1-8b", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	return engine.Config{Coefs: *c, Progress: 16}
}

func engineOf(t testing.TB, cfg engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func chain(group uint64, n int) []uint64 {
	c := make([]uint64, n)
	for i := range c {
		c[i] = (group*1_000_003 + uint64(i) + 1) * 0x9e3779b97f4a7c15
	}
	return c
}

// query is a query over so many endpoints.
func query(n int) *router.Query {
	q := &router.Query{Req: &request.Request{}, Snap: &fleet.Snapshot{States: make([]fleet.State, n)}, Hits: make([]int32, n), Keep: make([]bool, n)}
	for i := range q.Keep {
		q.Keep[i] = true
	}
	return q
}

// pick asks the clairvoyant where a request goes.
func pick(t testing.TB, now time.Duration, j cluster.Job, engines ...*engine.Engine) int {
	t.Helper()
	c := NewClairvoyant("clairvoyant", 0.3)
	c.See(now, &j, engines)
	d := new(router.Decision)
	if err := c.Route(query(len(engines)), d); err != nil {
		t.Fatal(err)
	}
	return d.Index
}

// TestAddedSeconds: what a request adds is the difference of the sums, over all requests, of TTFT and
// 0.3 times the time of streaming, each followed by its own name.
func TestAddedSeconds(t *testing.T) {
	cfg := h100(t)
	rapid.Check(t, func(t *rapid.T) {
		e, err := engine.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		type times struct{ sent, first, end time.Duration }
		now := time.Duration(0)
		sent := map[uint64]time.Duration{}
		for i := range rapid.IntRange(0, 8).Draw(t, "requests") {
			now += time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Millisecond
			e.Advance(now)
			r := &engine.Request{
				ID: uint64(i), PromptTokens: rapid.IntRange(1, 9000).Draw(t, "prompt"), OutputTokens: rapid.IntRange(1, 200).Draw(t, "output"),
				Blocks: chain(uint64(rapid.IntRange(0, 2).Draw(t, "group")), 560),
			}
			if _, err := e.Submit(now, r); err != nil {
				t.Fatal(err)
			}
			sent[r.ID] = now
		}
		now += time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Millisecond
		e.Advance(now)
		j := &cluster.Job{PromptTokens: rapid.IntRange(1, 9000).Draw(t, "prompt"), OutputTokens: rapid.IntRange(1, 200).Draw(t, "output"), Blocks: chain(1, 560)}
		total := func(with bool) float64 {
			c, all := e.Clone(), map[uint64]*times{}
			for id, at := range sent {
				all[id] = &times{sent: at, first: at, end: at} // of those that have ended
			}
			if with {
				submit(c, now, j)
				all[awaited] = &times{sent: now}
			}
			for due, ok := c.Next(); ok; due, ok = c.Next() {
				for _, ev := range c.Advance(due) {
					switch x := all[ev.ID]; ev.Kind { //nolint:exhaustive // these two times are what counts
					case engine.FirstToken:
						x.first = ev.At
					case engine.Finished:
						x.end = ev.At
					}
				}
			}
			sum := 0.0
			for id, x := range all {
				if x.end <= now && id != awaited {
					continue // it had ended before, the same on both
				}
				sum += 0.7*x.first.Seconds() + 0.3*x.end.Seconds() - x.sent.Seconds()
			}
			return sum
		}
		c := NewClairvoyant("", 0.3)
		c.See(now, j, []*engine.Engine{e})
		if got, want := c.added(e), total(true)-total(false); math.Abs(got-want) > 1e-6 {
			t.Fatalf("%v s added, want %v", got, want)
		}
	})
}

// TestClairvoyantPicks: the faster engine, the one with the cache, not the one where the harm to others
// is more than the cache saves.
func TestClairvoyantPicks(t *testing.T) {
	j := cluster.Job{PromptTokens: 8000, OutputTokens: 100, Blocks: chain(1, 500)}
	fast, slow := engineOf(t, h100(t)), engineOf(t, hardware(t, "L40S"))
	if i := pick(t, 0, j, slow, fast); i != 1 {
		t.Error("the slow one of two idle engines")
	}
	warm := engineOf(t, h100(t))
	if _, err := warm.Submit(0, &engine.Request{PromptTokens: 8000, OutputTokens: 1, Blocks: chain(1, 500)}); err != nil {
		t.Fatal(err)
	}
	now := 5 * time.Second
	for _, e := range []*engine.Engine{warm, fast} {
		e.Advance(now)
	}
	if i := pick(t, now, j, fast, warm); i != 1 {
		t.Error("a cold engine where a warm one is idle")
	}
	for range 80 { // streams that a long prompt would stall
		if _, err := fast.Submit(now, &engine.Request{PromptTokens: 16, OutputTokens: 3000}); err != nil {
			t.Fatal(err)
		}
	}
	if i := pick(t, now+time.Second, cluster.Job{PromptTokens: 16000, OutputTokens: 10}, fast, slow); i != 1 {
		t.Error("a fast engine with streams that the prompt stalls, where a slow one is idle")
	}
	small := engine.Config{Coefs: h100(t).Coefs, Blocks: 100}
	if i := pick(t, 0, j, engineOf(t, small), slow); i != 1 {
		t.Error("an engine that refuses the request")
	}
}

// TestClairvoyantDisturbsNothing: engines that are looked at behave as if they were not.
func TestClairvoyantDisturbsNothing(t *testing.T) {
	run := func(look bool) (recs []cluster.Record) {
		cfg := cluster.Config{Nodes: []cluster.Node{{Engine: h100(t)}, {Engine: h100(t)}}, Policy: &rotation{}}
		if look {
			cfg.Seer = looking{NewClairvoyant("", 0.3)}
		}
		src := &cluster.Slice{}
		for i := range 60 {
			src.Jobs = append(src.Jobs, cluster.Job{At: time.Duration(i) * 50 * time.Millisecond, PromptTokens: 1600 + 16*i, OutputTokens: 20 + i, Blocks: chain(uint64(i%3), 100)})
		}
		if _, err := cluster.Run(cfg, src, func(r *cluster.Record) {
			x := *r
			x.Blocks = nil
			recs = append(recs, x)
		}); err != nil {
			t.Fatal(err)
		}
		return recs
	}
	plain, watched := run(false), run(true)
	for i := range plain {
		if plain[i].E2E != watched[i].E2E || plain[i].TTFT != watched[i].TTFT || plain[i].CachedTokens != watched[i].CachedTokens {
			t.Fatalf("request %d: %+v, watched %+v", i, plain[i], watched[i])
		}
	}
}

// looking asks what a request would add everywhere, and Cached too.
type looking struct{ *Clairvoyant }

func (l looking) See(now time.Duration, j *cluster.Job, engines []*engine.Engine) {
	l.Clairvoyant.See(now, j, engines)
	for _, e := range engines {
		l.added(e)
		Cached(e, now, j)
	}
}

// rotation is round robin.
type rotation struct{ n int }

func (*rotation) Name() string { return "rotation" }

func (r *rotation) Route(q *router.Query, d *router.Decision) error {
	d.Index, d.Propensity = r.n%len(q.Keep), 1
	r.n++
	return nil
}
