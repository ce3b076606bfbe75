package router

import (
	"time"

	"github.com/presage-router/presage/features/fleet"
)

// Policy decides where a request goes. Route is called under the router's decision lock, one call
// at a time, and must not block, allocate per call, or keep q or d. It sets d.Index to a candidate
// (q.Keep[d.Index] is true) and d.Propensity to the probability with which it picks that candidate
// in this very state. It may fill d.Fallback and d.Why. An error means that no candidate is
// acceptable now; the request is refused.
type Policy interface {
	Name() string
	Route(q *Query, d *Decision) error
}

// Ticker is a Policy that also follows the fleet between decisions. Tick is called at the cadence of
// scrapes, one call at a time but beside Route, and must keep nothing of s. Policies composed of
// others pass it on to their parts.
type Ticker interface {
	Tick(now time.Time, s *fleet.Snapshot)
}

// Filter removes candidates: it may only turn true into false.
type Filter interface {
	Name() string
	Filter(q *Query, keep []bool)
}

// Category tells what a scorer is after: keeping requests where their state is, or spreading work.
type Category uint8

// The two sides that the adaptive strategy moves weight between.
const (
	Affinity Category = iota
	Distribution
)

// String returns the category's name.
func (c Category) String() string {
	if c == Affinity {
		return "affinity"
	}
	return "distribution"
}

// Scorer rates candidates: out[i] in [0,1], higher is better, for every i with keep[i]. A scorer
// that knows nothing about any candidate (a prefix scorer without text) gives all the same score;
// one that misses data for some gives these the mean of the others, never the best.
type Scorer interface {
	Name() string
	Category() Category
	Score(q *Query, keep []bool, out []float64)
}

// Picker chooses among candidates by score. It returns the index and the probability with which it
// is chosen in this state. At least one candidate is kept, and all kept scores are finite.
type Picker interface {
	Name() string
	Pick(q *Query, keep []bool, score []float64) (i int, propensity float64)
}

// Drawer is a Picker that may take another than the highest score. It also tells every candidate's
// probability, for the explanation, and the reason of such a pick.
type Drawer interface {
	Picker
	Chances(keep []bool, score []float64, out []float32)
	Drawn() Reason
}
