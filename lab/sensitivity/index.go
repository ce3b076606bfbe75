package sensitivity

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/prefix"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/oracle"
	"github.com/presage-router/presage/router"
)

// belief is a prefix index that follows the sizes of the engines' caches.
type belief interface {
	router.Prefixes
	SetCapacity(r fleet.Ref, blocks int)
}

// wrongIndex errs, for every request and endpoint anew: it misses what the endpoint holds, or claims
// that it holds as much as the best of all does.
type wrongIndex struct {
	belief
	missed, claimed float64 // shares
	rng             *rand.Rand
}

func newWrongIndex(b belief, missed, claimed float64, seed uint64) *wrongIndex {
	return &wrongIndex{belief: b, missed: missed, claimed: claimed, rng: rand.New(rand.NewPCG(seed, 0x696e646578))}
}

// Match implements [router.Prefixes].
func (x *wrongIndex) Match(blocks []uint64, snap *fleet.Snapshot, hits []int32) {
	x.belief.Match(blocks, snap, hits)
	if len(hits) == 0 {
		return
	}
	best := slices.Max(hits)
	for i := range hits {
		switch u := x.rng.Float64(); {
		case u < x.missed:
			hits[i] = 0
		case u < x.missed+x.claimed:
			hits[i] = best
		}
	}
}

// trueIndex knows what each engine will find in its cache when it comes to the request at hand, if
// nothing else arrives. It is to be the run's seer too.
type trueIndex struct {
	block  int // tokens of a block of the router
	seer   cluster.Seer
	cached []int
}

// See implements [cluster.Seer].
func (x *trueIndex) See(now time.Duration, j *cluster.Job, engines []*engine.Engine) {
	if x.seer != nil {
		x.seer.See(now, j, engines)
	}
	x.cached = x.cached[:0]
	for _, e := range engines {
		x.cached = append(x.cached, oracle.Cached(e, now, j))
	}
}

// Match implements [router.Prefixes].
func (x *trueIndex) Match(blocks []uint64, _ *fleet.Snapshot, hits []int32) {
	for i := range hits {
		hits[i] = int32(min(x.cached[i]/x.block, len(blocks)))
	}
}

// Insert implements [router.Prefixes].
func (*trueIndex) Insert(fleet.Ref, []uint64) {}

// Correct implements [router.Prefixes].
func (*trueIndex) Correct(fleet.Ref, []uint64, int, int) {}

// Withdraw implements [router.Prefixes].
func (*trueIndex) Withdraw(fleet.Ref, []uint64, int) {}

var (
	_ belief          = (*prefix.Index)(nil)
	_ router.Prefixes = (*wrongIndex)(nil)
	_ router.Prefixes = (*trueIndex)(nil)
	_ cluster.Seer    = (*trueIndex)(nil)
)
