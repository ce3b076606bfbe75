package router

import (
	"errors"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
)

// Decision is what a policy decided. It is reused between requests: Reset keeps its memory.
type Decision struct {
	Policy     string  // the policy that decided; a composed policy leaves the name of its part
	Failed     string  // the policy whose own answer could not be used; empty: it could
	Failure    string  // with Failed: "panic", "nan" (a propensity outside (0,1]) or "invalid" (a pick outside the candidates)
	Arm        string  // experiment arm; empty: none
	Index      int     // into Query.Snap.States
	Prefill    int     // prefill endpoint under disaggregation, or -1
	Fallback   []int   // further endpoints in order of preference, for gateways that retry
	Propensity float64 // probability of this pick in this state, (0,1]
	Why        Explanation
	Choice     features.Choice // what an exploring policy drew from; zero: it did not draw

	// Fore is what is foretold of the request on the picked endpoint; zero: nothing. The router fills it in
	// after the policy has decided.
	Fore features.Forecast
}

// Reset makes the decision empty, keeping its memory.
func (d *Decision) Reset() {
	d.Policy, d.Failed, d.Failure, d.Arm, d.Index, d.Prefill, d.Propensity = "", "", "", "", -1, -1, 0
	d.Fallback = d.Fallback[:0]
	d.Fore, d.Choice = features.Forecast{}, features.Choice{}
	d.Why.Reset()
}

// Errors of routing, for callers that map them to a status.
var (
	// ErrNoEndpoint: the fleet, or the gateway's subset of it, has no ready endpoint.
	ErrNoEndpoint = errors.New("no ready endpoint")
	// ErrUnknownModel: endpoints are ready, but none serves the model.
	ErrUnknownModel = errors.New("no endpoint serves the model")
	// ErrSaturated: endpoints are ready, but the policy's filters left none.
	ErrSaturated = errors.New("all endpoints are saturated")
)

// Work is what a request will cost endpoint i of the query.
func (q *Query) Work(i int) fleet.Work {
	return fleet.Work{
		Prompt:  int64(q.Req.PromptTokens),
		Cached:  int64(q.Req.CachedTokens(int(q.Hits[i]))),
		Choices: int32(q.Req.Choices),
	}
}
