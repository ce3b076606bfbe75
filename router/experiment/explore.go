package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// MostExplore is the largest share of decisions that may be spent on exploring.
const MostExplore = 0.5

// Explorer spends a share ε of a policy's decisions on finding out: with that probability the endpoint
// is drawn, each as likely, from the policy's own pick and the next best by its totals, k of them, at
// most [features.MostExplored]. The own pick has probability 1-ε+ε/k, each other ε/k, and the decision
// says so: what off-policy estimates need.
//
// A decision stands as it is where only one endpoint is left, where a prefill endpoint goes with it,
// and where the policy draws for itself, tries an endpoint out, or does not explain itself.
type Explorer struct {
	in    router.Policy
	share float64
	order []int // the endpoints drawn from, in order of rank
}

// NewExplorer returns the policy that explores around another, which it then owns. The share is above
// 0 and at most [MostExplore].
func NewExplorer(in router.Policy, share float64) (*Explorer, error) {
	if !(share > 0 && share <= MostExplore) {
		return nil, fmt.Errorf("a share of %v: not above 0 and at most %g", share, MostExplore)
	}
	return &Explorer{in: in, share: share, order: make([]int, 0, features.MostExplored)}, nil
}

// Name implements [router.Policy]: it is that of the policy that explores.
func (e *Explorer) Name() string { return e.in.Name() }

// Route implements [router.Policy].
func (e *Explorer) Route(q *router.Query, d *router.Decision) error {
	if err := e.in.Route(q, d); err != nil || !e.rank(q, d) {
		return err
	}
	k, own := len(e.order), d.Index
	d.Choice.Among = k
	if fore := q.Forecasts(); fore != nil {
		for r, i := range e.order {
			if v := fore[i].TTFT.Mean; v >= 0 && v < longest { // not NaN
				d.Choice.TTFT[r] = v
			}
		}
	}
	if q.Rand.Float64() < e.share {
		d.Choice.Rank = q.Rand.IntN(k)
	}
	each := e.share / float64(k)
	d.Why.Drawn = d.Why.Drawn[:0]
	for range q.Keep {
		d.Why.Drawn = append(d.Why.Drawn, 0)
	}
	for _, i := range e.order {
		d.Why.Drawn[i] = float32(each)
	}
	d.Why.Drawn[own] = float32(1 - e.share + each)
	d.Propensity = 1 - e.share + each
	if d.Choice.Rank > 0 {
		d.Index, d.Propensity = e.order[d.Choice.Rank], each
		d.Fallback = slices.Insert(d.Fallback, 0, own)
		d.Why.Reason = router.ByExplore
	}
	return nil
}

// longest is the longest forecast of a TTFT that is kept, in seconds.
const longest = 1e5

// rank puts the endpoints to draw from in order; false: there is nothing to explore.
func (e *Explorer) rank(q *router.Query, d *router.Decision) bool {
	w, n := &d.Why, len(q.Keep)
	if len(w.Totals) != n || len(w.Filtered) != n || d.Prefill >= 0 || d.Propensity != 1 || w.Reason == router.ByExplore ||
		d.Index < 0 || d.Index >= n || !q.Keep[d.Index] {
		return false
	}
	e.order = append(e.order[:0], d.Index)
	for len(e.order) < features.MostExplored {
		best := -1
		for i, keep := range q.Keep {
			if !keep || w.Filtered[i] != "" || slices.Contains(e.order, i) {
				continue
			}
			if best < 0 || w.HigherWins() && w.Totals[i] > w.Totals[best] || !w.HigherWins() && w.Totals[i] < w.Totals[best] {
				best = i
			}
		}
		if best < 0 {
			break
		}
		e.order = append(e.order, best)
	}
	return len(e.order) > 1
}

// Parts returns the policy that explores.
func (e *Explorer) Parts() []router.Policy { return []router.Policy{e.in} }

// Observe implements [router.Observer].
func (e *Explorer) Observe(o *features.Observation) {
	if x, ok := e.in.(router.Observer); ok {
		x.Observe(o)
	}
}

// Tick implements [router.Ticker].
func (e *Explorer) Tick(now time.Time, s *fleet.Snapshot) {
	if t, ok := e.in.(router.Ticker); ok {
		t.Tick(now, s)
	}
}

var (
	_ router.Policy   = (*Explorer)(nil)
	_ router.Observer = (*Explorer)(nil)
	_ router.Ticker   = (*Explorer)(nil)
)
