package router

import (
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

// Query is what a policy may look at. Everything in it is read-only, valid until Route returns, and
// indexed alike: Hits[i] and Keep[i] speak of Snap.States[i].
type Query struct {
	Now  time.Time
	Req  *request.Request
	Snap *fleet.Snapshot
	Hits []int32  // prefix blocks of Req that the endpoint is believed to hold, contiguous from the root
	Keep []bool   // the candidates: ready, serving the model, in the gateway's subset; at least one is true
	Out  []string // why an endpoint is no candidate: "draining", "prefill only", "subset", "model"; "" for candidates
	Rand *rand.Rand
	Tie  uint64 // a hash of the request for breaking cold ties, equal for equal requests

	fore *foretelling
}

// HitRatio is the share of the prompt that endpoint i is believed to hold, 0..1.
func (q *Query) HitRatio(i int) float64 {
	if q.Req.PromptTokens <= 0 {
		return 0
	}
	return float64(q.Req.CachedTokens(int(q.Hits[i]))) / float64(q.Req.PromptTokens)
}

// UncachedTokens is the number of prompt tokens endpoint i would have to compute.
func (q *Query) UncachedTokens(i int) int {
	return q.Req.PromptTokens - q.Req.CachedTokens(int(q.Hits[i]))
}

// Candidates is the number of endpoints kept.
func (q *Query) Candidates() int {
	n := 0
	for _, k := range q.Keep {
		if k {
			n++
		}
	}
	return n
}
