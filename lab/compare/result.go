package compare

import (
	"maps"
	"math"
	"slices"

	"github.com/presage-router/presage/internal/stat"
)

// Result is what one run was, from the first request after the warm-up on. A figure that a run has
// not, as percentiles of answers that never came, is NaN.
type Result struct {
	Policy string
	Load   float64
	Seed   uint64

	Requests   int
	Offered    float64            // of these, per second
	Attainment float64            // share that kept every SLO it carried; 0 of none
	Classes    map[string]Class   // by SLO class
	Tenants    map[string]float64 // attainment by tenant
	Goodput    float64            // requests that kept their SLOs, per second
	TTFT       Times              // of answered requests
	ITL, E2E   Times              // of answered requests
	Tokens     float64            // generated per second
	Hit        float64            // share of prompt tokens served from caches
	Recomputed float64            // prompt tokens that were computed although an engine had computed them before; see reuse
	Prompt     float64            // prompt tokens of answered requests
	LoadCV     float64            // coefficient of variation of requests per engine
	Herd       float64            // see herd
	Preempted  int                // preemptions
	Answered   int                // requests that were answered to the end
	Share      []float64          // of the requests, by engine
	// Changed is the share of requests that another engine served than under the reference policy,
	// of those that both had; NaN without a reference. Runs sets it.
	Changed float64

	picks picks // until they have been compared
}

// Class is what one SLO class got.
type Class struct {
	Requests   int     `json:"requests"`
	Attainment float64 `json:"slo_attainment"`
}

// Times are a mean and quantiles, in seconds.
type Times struct{ Mean, P50, P90, P99 float64 }

// timesOf sorts its argument.
func timesOf(seconds []float64) Times {
	if len(seconds) == 0 {
		return Times{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(seconds)
	return Times{stat.Mean(seconds), stat.Quantile(seconds, .5), stat.Quantile(seconds, .9), stat.Quantile(seconds, .99)}
}

// Fairness is Jain's index over what the SLO classes attained; of a single class over what its tenants
// did. NaN where there is neither, or nobody attained anything.
func (r *Result) Fairness() float64 {
	var x []float64
	switch {
	case len(r.Classes) > 1:
		for _, name := range slices.Sorted(maps.Keys(r.Classes)) {
			x = append(x, r.Classes[name].Attainment)
		}
	case len(r.Tenants) > 1:
		for _, name := range slices.Sorted(maps.Keys(r.Tenants)) {
			x = append(x, r.Tenants[name])
		}
	default:
		return math.NaN()
	}
	return stat.Jain(x)
}
