package router

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

var t0 = time.Unix(1_000_000, 0)

// allKnown is a page that carries every field.
const allKnown = fleet.KnowWaiting | fleet.KnowRunning | fleet.KnowKV | fleet.KnowBlocks | fleet.KnowLoRA |
	fleet.KnowPrefix | fleet.KnowTokens | fleet.KnowPreemptions

// state returns an idle endpoint with a fresh page on which everything is known.
func state(name string) fleet.State {
	return fleet.State{
		Endpoint: &fleet.Endpoint{Name: name, Model: "demo", TP: 1},
		Load:     &fleet.Load{At: t0, Known: allKnown},
		Since:    t0.Add(-time.Hour),
	}
}

// newQuery makes a query of which every state is a candidate.
func newQuery(req *request.Request, states ...fleet.State) *Query {
	q := &Query{
		Now: t0, Req: req, Snap: &fleet.Snapshot{At: t0, Slots: len(states), States: states},
		Hits: make([]int32, len(states)), Keep: make([]bool, len(states)), Out: make([]string, len(states)),
		Rand: rand.New(rand.NewPCG(1, 2)),
	}
	for i := range states {
		q.Keep[i] = true
		states[i].Slot, states[i].Instance = i, uint64(i+1)
		states[i].Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 8000)
	}
	return q
}

// states returns n idle endpoints e0, e1, ….
func states(n int) []fleet.State {
	out := make([]fleet.State, n)
	for i := range out {
		out[i] = state(fmt.Sprintf("e%d", i))
	}
	return out
}

// prompt returns a request of so many tokens in blocks of 64 tokens (256 bytes).
func prompt(tokens int) *request.Request {
	return &request.Request{
		API: request.Chat, Model: "demo", PromptTokens: tokens, ExactTokens: true, PromptBytes: 4 * tokens,
		BlockSize: 256, Blocks: make([]uint64, tokens/64), Choices: 1,
	}
}

// decide routes the query and fails the test on an error or an unusable decision.
func decide(t testing.TB, p Policy, q *Query) *Decision {
	t.Helper()
	var d Decision
	d.Reset()
	if err := p.Route(q, &d); err != nil {
		t.Fatal(err)
	}
	if d.Index < 0 || d.Index >= len(q.Keep) || !q.Keep[d.Index] || !(d.Propensity > 0 && d.Propensity <= 1) {
		t.Fatalf("%s: index %d, propensity %v", p.Name(), d.Index, d.Propensity)
	}
	return &d
}

// weights makes a profile's map of weights.
func weights(kv ...any) map[string]*float64 {
	m := map[string]*float64{}
	for i := 0; i < len(kv); i += 2 {
		switch w := kv[i+1].(type) {
		case nil:
			m[kv[i].(string)] = nil
		case int:
			f := float64(w)
			m[kv[i].(string)] = &f
		case float64:
			m[kv[i].(string)] = &w
		}
	}
	return m
}

func profile(t testing.TB, spec ProfileSpec) *Profile {
	t.Helper()
	p, err := NewProfile("test", spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
