package cluster

import (
	"testing"

	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

// h100s are n H100 with Llama-3.1-8B.
func h100s(t testing.TB, n int) []Node { return fleetOf(t, n, "H100", "llama-3.1-8b") }

func fleetOf(t testing.TB, n int, gpu, model string) []Node {
	t.Helper()
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	c, err := table.Find(gpu, model, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i].Engine.Coefs = *c
	}
	return nodes
}

// weighted is llm-d's profile: prefix 3, queue 2, KV 2.
func weighted(t testing.TB) router.Policy { return policy(t, "llmd-weighted") }

func policy(t testing.TB, name string) router.Policy {
	t.Helper()
	p, err := baseline.Policies().New(name, router.Params{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
