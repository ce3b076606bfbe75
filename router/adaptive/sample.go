package adaptive

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// Sample is what detectors see at one instant.
type Sample struct {
	Now     time.Time
	Elapsed time.Duration   // since the last sample, above 0
	Snap    *fleet.Snapshot // read-only

	// What was asked since the last sample.
	Arrivals int
	Prompt   float64 // prompt tokens
	Cached   float64 // of these, the most that any one candidate was believed to hold

	PeakPrefill float64 // prefill throughput of one endpoint, tokens per second
}

// serving reports whether an endpoint takes requests from this router.
func serving(s *fleet.State) bool { return !s.Drain && s.Role != fleet.RolePrefill }

// fresh reports whether the endpoint's page is recent enough to count.
func (s *Sample) fresh(st *fleet.State) bool {
	return !st.At.IsZero() && s.Now.Sub(st.At) <= router.DefaultMaxAge
}

// asked sums up requests between samples.
type asked struct {
	arrivals       int
	prompt, cached float64
}

// note adds a request.
func (a *asked) note(q *router.Query) {
	best := 0
	for i, k := range q.Keep {
		if k {
			best = max(best, q.Req.CachedTokens(int(q.Hits[i])))
		}
	}
	a.arrivals++
	a.prompt += float64(max(q.Req.PromptTokens, 0))
	a.cached += float64(best)
}
