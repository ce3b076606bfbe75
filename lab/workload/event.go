package workload

import (
	"strings"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
)

// parseEvent reads {at: 60s, engines: [0, 1], slow: 3}: a time, engines, and the one thing that happens.
func parseEvent(v *node, s *Scenario) *cluster.Event {
	if !v.mapping() {
		return nil
	}
	e := &cluster.Event{At: v.need("at").duration()}
	if e.At > s.Duration {
		v.key("at").fail("%s is after the end, %s", e.At, s.Duration)
	}
	for _, c := range v.need("engines").list() {
		e.Nodes = append(e.Nodes, c.count(0, max(0, s.Endpoints()-1)))
	}
	kinds := []string{"slow", "stall", "kill", "revive", "upgrade", "fail", "blind"}
	found := 0
	for _, kind := range kinds {
		c := v.key(kind)
		if v.has(kind) {
			found++
			happen(e, kind, c)
		}
	}
	if found != 1 {
		v.fail("says %d things that happen; want one of %s", found, strings.Join(kinds, ", "))
	}
	v.end()
	return e
}

// happen reads what the event does.
func happen(e *cluster.Event, kind string, c *node) {
	switch kind {
	case "slow":
		e.Kind, e.Factor = cluster.Slow, c.number(.01, 1000)
	case "stall":
		e.Kind, e.Length = cluster.Stall, c.duration()
	case "blind":
		e.Kind, e.Length = cluster.Blind, c.duration()
	case "fail":
		e.Kind, e.Factor = cluster.Fail, c.number(0, 1)
	case "kill", "revive":
		if e.Kind = cluster.Kill; kind == "revive" {
			e.Kind = cluster.Revive
		}
		if c.there() && !c.flag() {
			c.fail("write %s: true", kind)
		}
	case "upgrade":
		e.Kind = cluster.Upgrade
		if !c.mapping() {
			return
		}
		if name := c.key("profile").choice("async", "sync"); name != "" {
			profile, err := engine.ParseProfile(name)
			if err != nil {
				c.key("profile").fail("%v", err)
			}
			e.Profile = profile
		}
		e.MaxSeqs, e.MaxBatched = c.key("max_num_seqs").count(1, 1<<16), c.key("max_num_batched_tokens").count(1, 1<<24)
		c.end()
	}
}
