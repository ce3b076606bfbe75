package oracle

import (
	"errors"
	"slices"
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/router"
)

// replay is what an assignment came to.
type replay struct {
	picks  []int32 // engine by request number: those given, and what was made up beyond them
	met    int     // requests that count and kept their SLOs
	counts int     // requests that count
	e2e    float64 // mean, in seconds, of those that count
	missed []int   // numbers of those that count and did not keep them
	sent   []time.Duration
}

// better reports whether a replay is better than another: more requests keep their SLOs, or as many
// with a lower mean E2E.
func (r *replay) better(o *replay) bool {
	return r.met > o.met || r.met == o.met && r.e2e < o.e2e
}

// assigned is a policy that sends requests where it was told, by their number; beyond that round robin.
// Where the engine is no candidate, it takes the first candidate from there on.
type assigned struct {
	picks []int32
	next  int
}

// Name implements [router.Policy].
func (*assigned) Name() string { return "assigned" }

// Route implements [router.Policy].
func (p *assigned) Route(q *router.Query, d *router.Decision) error {
	i := p.next % len(q.Keep)
	if p.next < len(p.picks) {
		i = int(p.picks[p.next]) % len(q.Keep)
	}
	p.next++
	for range q.Keep {
		if q.Keep[i] {
			d.Index, d.Propensity = i, 1
			return nil
		}
		i = (i + 1) % len(q.Keep)
	}
	return errors.New("no candidate")
}

// trial replays a scenario's requests under an assignment, in a cluster that is as [compare.Arena.Play]
// makes one but for what no assignment needs: index, learner, detector.
func trial(a *compare.Arena, load float64, seed uint64, picks []int32) (*replay, error) {
	cfg, err := a.Scenario.Cluster(a.Table)
	if err != nil {
		return nil, err
	}
	src, err := a.Scenario.Source(workload.Options{Seed: seed, Load: load, Trace: a.Trace})
	if err != nil {
		return nil, err
	}
	cfg.Seed, cfg.NoPrefixes, cfg.Scrape = seed, true, -1
	cfg.Policy = &assigned{picks: picks}
	r := &replay{}
	warmup, until := a.Scenario.Warmup, a.Scenario.Duration
	if _, err := cluster.Run(cfg, src, func(rec *cluster.Record) {
		for len(r.picks) <= int(rec.Number) {
			r.picks, r.sent = append(r.picks, 0), append(r.sent, 0)
		}
		r.picks[rec.Number], r.sent[rec.Number] = int32(max(rec.Node, 0)), rec.Sent
		if rec.Sent < warmup || until > 0 && rec.Sent >= until {
			return
		}
		r.counts++
		r.e2e += rec.E2E.Seconds()
		if rec.Met {
			r.met++
		} else {
			r.missed = append(r.missed, int(rec.Number))
		}
	}); err != nil {
		return nil, err
	}
	if r.counts > 0 {
		r.e2e /= float64(r.counts)
	}
	slices.Sort(r.missed)
	return r, nil
}

// picker notes where requests go, in order of decisions.
type picker struct{ picks []int32 }

// Record implements [router.Recorder].
func (p *picker) Record(_ router.ID, _ *router.Query, d *router.Decision) {
	p.picks = append(p.picks, int32(d.Index))
}

var (
	_ router.Policy   = (*assigned)(nil)
	_ router.Recorder = (*picker)(nil)
)
