package baseline

import (
	"sync"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/router"
)

// Published defaults of GORGO.
var gorgoQueued = router.Knob{Name: "queued", About: "weight of a queued token against one of the request's own", Default: 1, Low: 1e-5, High: 5}

const (
	gorgoWindow = 100  // TTFTs that the regression looks at
	gorgoHop    = 50   // TTFTs between two regressions
	gorgoPrice  = 1.0  // ms per token, of both kinds, until the first regression
	gorgoLeast  = 1e-5 // bounds of what a token may cost, in ms
	gorgoMost   = 5.0
)

// Gorgo2D is GORGO's two-dimensional rule, in ms:
//
//	P*(own uncached tokens) + w_q*Q*(uncached tokens in flight)
//
// with P and Q by least squares over the last TTFTs, each endpoint with an intercept of its own:
//
//	TTFT = intercept + P*own + Q*queued
//
// A slope that the window does not tell, as while nothing ever queues, stays as it was. Round-trip
// times, the rule's third term, are not measured here and taken as equal. Tokens in flight are the
// ledger's; TTFTs are those of records that the router hands to policies, whoever decided. It needs
// no forecast.
type Gorgo2D struct {
	costs
	weight float64 // w_q

	mu     sync.Mutex // guards what follows: records come from other goroutines
	own    float64    // P
	queued float64    // Q
	window [gorgoWindow]gorgoSample
	seen   int
}

type gorgoSample struct {
	endpoint      string
	own, queue, y float64 // tokens, tokens, ms
}

// NewGorgo2D returns the policy.
func NewGorgo2D(p router.Params) *Gorgo2D {
	return &Gorgo2D{costs: newCosts(p, "ms", "own prompt", "queue"), weight: p.Knob(gorgoQueued), own: gorgoPrice, queued: gorgoPrice}
}

// Name implements [router.Policy].
func (*Gorgo2D) Name() string { return "gorgo-2d" }

// Route implements [router.Policy].
func (b *Gorgo2D) Route(q *router.Query, d *router.Decision) error {
	b.mu.Lock()
	own, queued := b.own, b.queued
	b.mu.Unlock()
	b.start(q, d)
	for i, k := range q.Keep {
		if k {
			b.set(d, i, own*float64(q.UncachedTokens(i)), b.weight*queued*float64(q.Snap.States[i].Uncached))
		}
	}
	b.lowest(q, d)
	return nil
}

// Observe implements [router.Observer].
func (b *Gorgo2D) Observe(o *features.Observation) {
	if o.TTFT <= 0 || o.Endpoint != o.Picked {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.window[b.seen%gorgoWindow] = gorgoSample{
		endpoint: o.Picked, own: float64(max(0, o.PromptTokens-o.HitTokens)), queue: float64(o.State.Uncached), y: 1e3 * o.TTFT.Seconds(),
	}
	b.seen++
	if b.seen >= gorgoWindow && b.seen%gorgoHop == 0 {
		b.regress()
	}
}

// regress solves the normal equations of the window, in differences from each endpoint's means.
func (b *Gorgo2D) regress() {
	var uu, uq, qq, uy, qy float64
	for i := range b.window {
		var n, own, queue, y float64
		for j := range b.window {
			if s := &b.window[j]; s.endpoint == b.window[i].endpoint {
				n, own, queue, y = n+1, own+s.own, queue+s.queue, y+s.y
			}
		}
		s := &b.window[i]
		du, dq, dy := s.own-own/n, s.queue-queue/n, s.y-y/n
		uu, uq, qq, uy, qy = uu+du*du, uq+du*dq, qq+dq*dq, uy+du*dy, qy+dq*dy
	}
	const least = 1e-6 // of the variance: what a window must leave of one length when the other is known
	switch det := uu*qq - uq*uq; {
	case det > least*uu*qq:
		b.own, b.queued = gorgoHeld((uy*qq-qy*uq)/det), gorgoHeld((qy*uu-uy*uq)/det)
	case qq == 0 && uu > 0:
		b.own = gorgoHeld(uy / uu)
	case uu == 0 && qq > 0:
		b.queued = gorgoHeld(qy / qq)
	}
}

func gorgoHeld(slope float64) float64 { return min(max(slope, gorgoLeast), gorgoMost) }

var (
	_ router.Policy   = (*Gorgo2D)(nil)
	_ router.Observer = (*Gorgo2D)(nil)
)
