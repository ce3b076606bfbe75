package predictive

import "github.com/presage-router/presage/router"

var loadTerms = []string{"tokens x requests"}

// byLoad decides where nothing can be foretold: the least product of uncached tokens ahead and
// requests in flight (LMetric), from the router's own ledger.
func (p *Policy) byLoad(q *router.Query, d *router.Decision) error {
	n := len(q.Keep)
	d.Why.Size("tokens", loadTerms, n)
	p.cost = p.cost[:0]
	p.keep = append(p.keep[:0], q.Keep...)
	for i, k := range p.keep {
		var cost float64
		if k {
			s := &q.Snap.States[i]
			cost = (float64(s.Uncached) + float64(q.UncachedTokens(i)) + 1) * float64(s.Requests+1)
			d.Why.Row(i)[0] = float32(cost)
		}
		p.cost = append(p.cost, cost)
	}
	d.Index = p.choose(q, 0)
	d.Propensity = 1
	p.explain(q, d)
	return nil
}
