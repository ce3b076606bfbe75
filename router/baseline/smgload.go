package baseline

import (
	"math"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

// Published defaults of SMG's least-load policy.
var smgLambda = router.Knob{Name: "lambda", About: "seconds charged for KV usage k at k/(1-k) = 1", Default: 0.15, Low: 0, High: 100}

const (
	smgMaxKV      = 0.999  // k is capped here
	smgThroughput = 2_000. // tokens per second where an endpoint's own is not known
	smgPrompt     = 1_024. // mean prompt, in tokens, of requests at an endpoint without a page
	smgPoll       = 5 * time.Second
)

// SMGLeastLoad charges seconds of waiting: uncached tokens ahead over generation throughput, plus
// lambda*k/(1-k) for KV usage k. An endpoint without a page is charged its requests times a mean
// prompt over the fleet's mean throughput; with no page at all the fewest requests win.
//
// Tokens ahead are the ledger's uncached tokens without a first token, where SMG adds what its last
// poll found queued to what it sent since. Throughput is the growth of the engine's counter of
// generated tokens between pages at least one poll apart.
type SMGLeastLoad struct {
	costs
	lambda float64
	rates  []rate // by slot
}

// rate follows the generation throughput of one endpoint instance.
type rate struct {
	instance  uint64
	at        time.Time
	generated float64
	perSecond float64 // 0: not known
}

// NewSMGLeastLoad returns the policy.
func NewSMGLeastLoad(p router.Params) *SMGLeastLoad {
	return &SMGLeastLoad{costs: newCosts(p, "s", "queue", "kv"), lambda: p.Knob(smgLambda)}
}

// Name implements [router.Policy].
func (*SMGLeastLoad) Name() string { return "smg-least-load" }

// Route implements [router.Policy].
func (b *SMGLeastLoad) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	if n := q.Snap.Slots; len(b.rates) < n {
		b.rates = append(b.rates, make([]rate, n-len(b.rates))...)
	}
	pages, sum := 0, 0.0
	for i, k := range q.Keep {
		if s := &q.Snap.States[i]; k && hasPage(q, s) {
			pages++
			sum += b.throughput(s)
		}
	}
	for i, k := range q.Keep {
		if !k {
			continue
		}
		s := &q.Snap.States[i]
		switch {
		case pages == 0: // all dark: join the shortest queue
			b.set(d, i, float64(s.Requests)*smgPrompt/smgThroughput, 0)
		case !hasPage(q, s):
			b.set(d, i, float64(s.Requests)*smgPrompt/(sum/float64(pages)), 0)
		default:
			k := min(float64(s.KVUsage), smgMaxKV)
			b.set(d, i, float64(s.Uncached)/b.throughput(s), b.lambda*k/(1-k))
		}
	}
	b.lowest(q, d)
	return nil
}

// hasPage reports whether a recent page tells the KV usage.
func hasPage(q *router.Query, s *fleet.State) bool {
	return s.Known.Has(fleet.KnowKV) && s.KVUsage >= 0 && s.KVUsage <= 1 && q.Now.Sub(s.At) <= router.DefaultMaxAge
}

// hasQueue reports whether a recent page tells the requests waiting.
func hasQueue(q *router.Query, s *fleet.State) bool {
	return s.Known.Has(fleet.KnowWaiting) && s.Waiting >= 0 && q.Now.Sub(s.At) <= router.DefaultMaxAge
}

// throughput returns the endpoint's generation throughput in tokens per second, after taking in its
// latest page.
func (b *SMGLeastLoad) throughput(s *fleet.State) float64 {
	r := &b.rates[s.Slot]
	if s.Known.Has(fleet.KnowTokens) {
		elapsed := s.At.Sub(r.at)
		switch {
		case r.instance != s.Instance || s.Load.Generated < r.generated: // first page, or the engine restarted
			*r = rate{instance: s.Instance, at: s.At, generated: s.Load.Generated}
		case elapsed >= smgPoll:
			r.perSecond = (s.Load.Generated - r.generated) / elapsed.Seconds()
			r.at, r.generated = s.At, s.Load.Generated
		}
	}
	if r.instance == s.Instance && r.perSecond > 0 && !math.IsInf(r.perSecond, 1) {
		return r.perSecond
	}
	return smgThroughput
}

var _ router.Policy = (*SMGLeastLoad)(nil)
