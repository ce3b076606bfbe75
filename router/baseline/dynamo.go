package baseline

import "github.com/presage-router/presage/router"

// Published defaults of Dynamo's KV router. Decay of the credit, host, disk and shared tiers and the
// softmax temperature are off by default or have no counterpart here.
var (
	dynamoCredit  = router.Knob{Name: "credit", About: "blocks credited per cached block", Default: 1, Low: 0, High: 10}
	dynamoScale   = router.Knob{Name: "prefill", About: "weight of a block of prefill against one in decode", Default: 1, Low: 0, High: 100}
	dynamoRequest = router.Knob{Name: "request", About: "blocks charged per active request", Default: 0, Low: 0, High: 1e5}
)

const dynamoBlockSize = 16 // tokens per block of the common engines

// DynamoLinear is Dynamo's default cost, in blocks:
//
//	s*max(0, prefill - credit) + decode + w_a*active
//
// with prefill the uncached blocks whose first token has not come plus those of the whole prompt,
// credit the blocks of the prompt that the endpoint holds, decode the blocks that active requests
// occupy, and random ties. Counts are the router's own, as Dynamo's are.
type DynamoLinear struct {
	costs
	credit, scale, request float64
	block                  float64
}

// NewDynamoLinear returns the policy.
func NewDynamoLinear(p router.Params) *DynamoLinear {
	b := &DynamoLinear{
		costs:  newCosts(p, "blocks", "prefill", "prefix", "decode", "requests"),
		credit: p.Knob(dynamoCredit), scale: p.Knob(dynamoScale), request: p.Knob(dynamoRequest), block: dynamoBlockSize,
	}
	if p.BlockSize > 0 {
		b.block = float64(p.BlockSize)
	}
	return b
}

// Name implements [router.Policy].
func (*DynamoLinear) Name() string { return "dynamo-linear" }

// Route implements [router.Policy].
func (b *DynamoLinear) Route(q *router.Query, d *router.Decision) error {
	b.start(q, d)
	for i, k := range q.Keep {
		if !k {
			continue
		}
		s := &q.Snap.States[i]
		raw := (float64(s.Uncached) + float64(q.Req.PromptTokens)) / b.block
		credit := min(b.credit*float64(q.Req.CachedTokens(int(q.Hits[i])))/b.block, raw)
		decode := float64(s.PendingTokens+s.Context) / b.block
		b.set(d, i, b.scale*raw, -b.scale*credit, decode, b.request*float64(s.Requests))
	}
	b.lowest(q, d)
	return nil
}

var _ router.Policy = (*DynamoLinear)(nil)
