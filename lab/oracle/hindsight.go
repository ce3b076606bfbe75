package oracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/compare"
)

// Hindsight looks for a good assignment of a short trace's requests, all of which it knows, by replaying
// one assignment after the other. It begins with the best one that the named policies made and keeps
// whatever is better: more requests keep their SLOs, or as many with a lower mean E2E. What it changes is
// one request, two that trade places, or those of a while, mostly around requests that missed. Equal
// seeds find the same.
type Hindsight struct {
	Arena  *compare.Arena // with a short scenario, see [Short]
	Start  []string       // policies; at least one
	Replay int            // assignments that are tried; 0: 400
}

// Found is the best assignment that was found.
type Found struct {
	From       string  // the policy that it began with
	Began      float64 // attainment of that one's assignment
	Attainment float64
	E2E        float64 // mean, in seconds
	Tried      int
	Picks      []int32 // engine by request number
}

const replays = 400

// Search searches for the run of the arena at that load and seed. When ctx is done it returns the best
// so far with the error.
func (h *Hindsight) Search(ctx context.Context, load float64, seed uint64) (*Found, error) {
	if len(h.Start) == 0 {
		return nil, fmt.Errorf("hindsight: no policy to begin with; name at least one")
	}
	found := &Found{}
	var best *replay
	for _, policy := range h.Start {
		p := &picker{}
		if _, err := h.Arena.PlayIn(policy, load, seed, func(cfg *cluster.Config) error {
			cfg.Recorder = p
			return nil
		}); err != nil {
			return nil, err
		}
		r, err := trial(h.Arena, load, seed, p.picks)
		if err != nil {
			return nil, err
		}
		if best == nil || r.better(best) {
			best, found.From = r, policy
		}
	}
	found.Began = best.attained()
	budget := h.Replay
	if budget <= 0 {
		budget = replays
	}
	rng := rand.New(rand.NewPCG(seed, 0x68696e64))
	var err error
	for found.Tried < budget {
		if err = ctx.Err(); err != nil {
			break
		}
		r, failed := trial(h.Arena, load, seed, h.move(rng, best))
		if failed != nil {
			return nil, failed
		}
		found.Tried++
		if r.better(best) {
			best = r
		}
	}
	found.Attainment, found.E2E, found.Picks = best.attained(), best.e2e, best.picks
	return found, err
}

func (r *replay) attained() float64 { return float64(r.met) / float64(max(r.counts, 1)) }

// Moves of the search, drawn with equal chances.
const (
	reassign = iota // one request elsewhere
	trade           // two requests of about the same time swap engines
	shake           // a while of requests, each to an engine drawn at random
	follow          // a while of requests to one engine, as for a prefix that they share
	moves
)

const (
	near  = 12 // requests before and after
	while = 6  // requests
)

// move returns a changed copy of an assignment.
func (h *Hindsight) move(rng *rand.Rand, r *replay) []int32 {
	picks, n := slices.Clone(r.picks), h.Arena.Scenario.Endpoints()
	at := rng.IntN(len(picks))
	if len(r.missed) > 0 && rng.IntN(4) > 0 { // at one that missed, or before it: those ahead made it wait
		at = max(0, r.missed[rng.IntN(len(r.missed))]-rng.IntN(near))
	}
	switch rng.IntN(moves) {
	case reassign:
		picks[at] = int32(rng.IntN(n))
	case trade:
		other := min(max(0, at-near+rng.IntN(2*near+1)), len(picks)-1)
		picks[at], picks[other] = picks[other], picks[at]
	case shake:
		for i := at; i < min(at+2+rng.IntN(while), len(picks)); i++ {
			picks[i] = int32(rng.IntN(n))
		}
	case follow:
		to := int32(rng.IntN(n))
		for i := at; i < min(at+2+rng.IntN(while), len(picks)); i++ {
			if picks[i] == picks[at] || rng.IntN(3) == 0 {
				picks[i] = to
			}
		}
	}
	return picks
}

// Short returns a copy of the arena whose scenario ends when so many requests have been sent under
// round robin at that load and seed, after a warm-up of the given share of them: replays of it are
// quick enough to search in. Events beyond its end are left out.
func Short(a *compare.Arena, load float64, seed uint64, requests int, warmup float64) (*compare.Arena, error) {
	if requests < 2 || !(warmup >= 0 && warmup < 1) {
		return nil, fmt.Errorf("short trace: %d requests, of which %v to warm up: want 2 or more and a share below 1", requests, warmup)
	}
	r, err := trial(a, load, seed, nil)
	if err != nil {
		return nil, err
	}
	if len(r.sent) <= requests {
		return nil, fmt.Errorf("short trace: %s sends %d requests at %g; want more than the %d that it is cut to", a.Scenario.Name, len(r.sent), load, requests)
	}
	sent := slices.Clone(r.sent)
	slices.Sort(sent)
	s := *a.Scenario
	s.Duration, s.Warmup = sent[requests], sent[int(warmup*float64(requests))]
	s.Events = slices.DeleteFunc(slices.Clone(s.Events), func(e cluster.Event) bool { return e.At >= s.Duration })
	short := *a
	short.Scenario = &s
	return &short, nil
}
