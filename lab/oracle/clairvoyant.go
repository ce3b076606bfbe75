package oracle

import (
	"math"
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
)

// Clairvoyant sends each request where it adds the fewest seconds, to itself and to all that are
// there: the change of the sum over requests of TTFT and a share of the time of streaming, by the
// engines' own physics, with true lengths and true caches and nothing that comes later (policy study,
// section 0.9). It follows two clones of every engine per decision.
type Clairvoyant struct {
	name  string
	share float64 // of a second of streaming, in seconds of TTFT

	now     time.Duration
	job     cluster.Job
	engines []*engine.Engine
	course  course // scratch
}

// NewClairvoyant returns the policy under a name.
func NewClairvoyant(name string, share float64) *Clairvoyant {
	return &Clairvoyant{name: name, share: share}
}

// Name implements [router.Policy].
func (c *Clairvoyant) Name() string { return c.name }

// See implements [cluster.Seer].
func (c *Clairvoyant) See(now time.Duration, j *cluster.Job, engines []*engine.Engine) {
	c.now, c.job, c.engines = now, *j, engines
}

var terms = []string{"added"}

// Route implements [router.Policy].
func (c *Clairvoyant) Route(q *router.Query, d *router.Decision) error {
	d.Why.Size("ms", terms, len(q.Keep))
	best, least, ties := -1, math.Inf(1), uint64(0)
	for i, k := range q.Keep {
		if !k {
			continue
		}
		added := math.Inf(1) // refused: taken only where all refuse
		if i < len(c.engines) {
			added = c.added(c.engines[i])
		}
		d.Why.Row(i)[0] = float32(min(1e3*added, math.MaxFloat32))
		d.Why.Totals[i] = d.Why.Row(i)[0]
		switch {
		case best < 0 || added < least-1e-9:
			best, least, ties = i, added, 1
		case added <= least+1e-9:
			ties++
			if (q.Tie>>8+ties*0x9e3779b97f4a7c15)>>16%ties == 0 { // each is as likely
				best = i
			}
		}
	}
	d.Index, d.Propensity = best, 1
	d.Judge(q, q.Keep)
	return nil
}

// added is the change that the request at hand makes on an engine; infinite where it is refused.
func (c *Clairvoyant) added(e *engine.Engine) float64 {
	var ok bool
	if c.course, ok = c.course[:0].follow(e, c.now, &c.job); !ok {
		return math.Inf(1)
	}
	with := c.course.seconds(c.now, c.share)
	c.course, _ = c.course[:0].follow(e, c.now, nil)
	return with - c.course.seconds(c.now, c.share)
}

var knobDecode = router.Knob{Name: "decode", About: "weight of a second of streaming, of this request and of others", Default: 0.3, Low: 0, High: 1}

// Recipes returns the policies of this package that can be played like any other, in the lab alone:
// elsewhere nobody shows them the engines, and to them all endpoints are then alike.
func Recipes() router.Registry {
	return router.Registry{
		"clairvoyant": {
			About: "fewest seconds added to all requests, by the engines' own physics and true lengths: no router can know them",
			Knobs: []router.Knob{knobDecode},
			New: func(p router.Params) (router.Policy, error) {
				return NewClairvoyant("clairvoyant", p.Knob(knobDecode)), nil
			},
		},
	}
}

var (
	_ router.Policy = (*Clairvoyant)(nil)
	_ cluster.Seer  = (*Clairvoyant)(nil)
)
