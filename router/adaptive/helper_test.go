package adaptive

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/router"
)

var t0 = time.Unix(1_000_000, 0)

const allKnown = fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV

// policy makes a policy of default options.
func policy(t testing.TB) *Policy {
	t.Helper()
	p, err := New(Defaults(router.Params{}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// states returns n idle endpoints with fresh pages.
func states(n int) []fleet.State {
	out := make([]fleet.State, n)
	for i := range out {
		out[i] = fleet.State{
			Endpoint: &fleet.Endpoint{Name: fmt.Sprintf("e%d", i), Model: "demo", TP: 1},
			Load:     &fleet.Load{At: t0, Known: allKnown},
			Slot:     i, Instance: uint64(i + 1), Since: t0.Add(-time.Hour),
		}
	}
	return out
}

func snapshot(s []fleet.State) *fleet.Snapshot {
	return &fleet.Snapshot{At: t0, Slots: len(s), States: s}
}

// newQuery makes a query of which every state is a candidate.
func newQuery(s []fleet.State) *router.Query {
	q := &router.Query{
		Now: t0, Req: prompt(1, 6400), Snap: snapshot(s), Hits: make([]int32, len(s)), Keep: make([]bool, len(s)),
		Out: make([]string, len(s)), Rand: rand.New(rand.NewPCG(1, 2)),
	}
	for i := range q.Keep {
		q.Keep[i] = true
	}
	return q
}

// prompt returns a request of so many tokens whose blocks are those of the topic.
func prompt(topic uint64, tokens int) *request.Request {
	r := &request.Request{
		API: request.Chat, Model: "demo", PromptTokens: tokens, ExactTokens: true, PromptBytes: 4 * tokens,
		BlockSize: 256, Blocks: make([]uint64, tokens/64), Choices: 1,
	}
	for i := range r.Blocks {
		r.Blocks[i] = topic<<32 | uint64(i+1)
	}
	return r
}

// pool is a router over simulated endpoints that answer after a while.
type pool struct {
	t      testing.TB
	fleet  fleet.Fleet
	router *router.Router
	policy router.Policy
	placed []int // decisions, by endpoint
	open   []answer
	seq    []int // decisions, in order
	snap   fleet.Snapshot
}

type answer struct {
	first, end time.Time
	flight     *router.Flight
	began      bool
}

func newPool(t testing.TB, n int, p router.Policy) *pool {
	t.Helper()
	x := &pool{t: t, policy: p, placed: make([]int, n)}
	var list []*fleet.Endpoint
	for i := range n {
		list = append(list, &fleet.Endpoint{
			Name: fmt.Sprintf("e%d", i), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000), Model: "demo", TP: 1,
		})
	}
	if _, err := x.fleet.Sync(t0, list); err != nil {
		t.Fatal(err)
	}
	x.router = router.New(router.Options{Fleet: &x.fleet, Policy: p, Prefixes: prefix.NewIndex(prefix.Options{}), Recorder: x, Seed: 7})
	return x
}

// Record implements [router.Recorder].
func (x *pool) Record(_ router.ID, _ *router.Query, d *router.Decision) {
	x.placed[d.Index]++
	x.seq = append(x.seq, d.Index)
}

// ask routes a request that gets its first token after wait and ends after length.
func (x *pool) ask(now time.Time, r *request.Request, wait, length time.Duration) {
	x.t.Helper()
	f := new(router.Flight)
	if err := x.router.Route(&router.Ask{Now: now, Req: r}, f); err != nil {
		x.t.Fatal(err)
	}
	x.open = append(x.open, answer{first: now.Add(wait), end: now.Add(length), flight: f})
}

// scrape ends what is over, has every endpoint write its page, and ticks the policy.
func (x *pool) scrape(now time.Time) {
	kept := x.open[:0]
	for _, a := range x.open {
		if !a.began && !a.first.After(now) {
			a.flight.Tokens(a.first, 1)
			a.began = true
		}
		if a.end.After(now) {
			kept = append(kept, a)
			continue
		}
		a.flight.Finish(a.end, &router.Outcome{Cause: fleet.Complete, Usage: router.Usage{Prompt: features.Unknown, Cached: features.Unknown, Output: 100}})
	}
	x.open = kept
	x.fleet.Snapshot(now, &x.snap)
	for _, s := range x.snap.States {
		x.fleet.SetLoad(fleet.Ref{Slot: s.Slot, Instance: s.Instance}, &fleet.Load{
			At: now, Known: allKnown, Running: s.Streaming, Waiting: max(s.Pending-4, 0), KVUsage: min(float32(s.Context+s.PendingTokens)/500_000, 1),
		})
	}
	if t, ok := x.policy.(router.Ticker); ok {
		x.fleet.Snapshot(now, &x.snap)
		t.Tick(now, &x.snap)
	}
}
