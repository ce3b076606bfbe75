package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/engine"
)

// node is one engine as the run sees it.
type node struct {
	*engine.Engine
	name     string
	cfg      engine.Config
	rng      *rand.Rand // of faults
	requests uint64
	dead     bool
	telling  bool // in advance
	blind    bool
	fail     float64       // share of requests answered 500
	link     time.Duration // when its KV link is free
	kvBytes  int
}

// addNode makes engine i and describes its endpoint.
func (s *sim) addNode(i int) (*fleet.Endpoint, error) {
	in, n := &s.cfg.Nodes[i], &s.nodes[i]
	cfg := in.Engine
	cfg.Progress, cfg.KVEvents, cfg.SingleStep = s.cfg.Progress, false, cfg.SingleStep || s.cfg.SingleStep
	cfg.Seed = seedOf(s.cfg.Seed, "noise", i)
	e, err := engine.New(cfg)
	if err != nil {
		return nil, err
	}
	n.Engine, n.cfg = e, e.Config()
	n.name = in.Name
	if n.name == "" {
		n.name = fmt.Sprintf("%s-%d", strings.ToLower(cfg.Coefs.GPU), i)
	}
	n.rng = rand.New(rand.NewPCG(seedOf(s.cfg.Seed, "faults", i), 0))
	if shape, ok := engine.ShapeOf(cfg.Coefs.Model); ok {
		n.kvBytes = shape.KVBytes()
	} else if in.Role == fleet.RolePrefill {
		return nil, fmt.Errorf("%s: bytes per token are not known, so its KV cannot be transferred", cfg.Coefs.Model)
	}
	s.engines = append(s.engines, e)
	ep := &fleet.Endpoint{
		Name: n.name, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 8000),
		Model: cfg.Coefs.Model, Engine: "vllm", GPU: cfg.Coefs.GPU, TP: cfg.Coefs.TP,
		Role: in.Role, Adapters: s.adapters[1:], Labels: in.Labels,
	}
	if s.cfg.Unlabelled {
		ep.GPU, ep.TP = "", 0
	}
	return ep, nil
}
