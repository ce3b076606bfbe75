package oracle

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/workload"
)

// Bound is what no assignment of the requests to the engines, and no policy, attains more than.
type Bound struct {
	Requests   int     // that count: sent after the warm-up
	Alone      float64 // share that could keep their SLOs if each had the best engine for itself, with all of its prompt cached that an earlier request brought
	Attainment float64 // share that all together could, at most; never above Alone
}

// Upper bounds the attainment of every policy on a scenario.
//
// Proof. A request that keeps its SLOs has its first token by its TTFT (or E2E) SLO and its end by that
// of ITL (or E2E). Alone: the floors of [floor] are not above its times on any engine, since further
// requests in a batch only add terms, and no more of the prompt can be cached than an earlier request
// had: what an engine caches it computed before, in order of arrival. A request that the floors of every
// engine fail is missed by all. Together: let M be the requests that keep their SLOs, of those sent in
// [a, a+d). All steps with their prefill tokens lie in [a, a+d+D], D the longest of their TTFT SLOs, and
// all with any of their tokens in such an interval with D the longest time to an end. An engine has one
// second of steps per second, and steps take at least the sum of what the requests' tokens in them cost.
// So for every engine e the work w of M on it is at most d+D, and for any weights m
//
//	sum over M of min over e of m[e]*w[e]  <=  sum over e of m[e]*(sum over M on e of w[e])  <=  (d+D) * sum of m.
//
// The number of requests in M is thus at most that of the cheapest ones whose left side fits: the bound
// of one interval. Intervals that follow each other share no request, so their bounds add up. The least
// sum over several d, for prefill and for all work, is the result; engines are pooled and every
// token is computed as if the rest of the batch paid for its own alone, so it is not attained in general.
//
// Where a client's next request waits for an answer, what arrives depends on the policy, and there is
// no bound; an error says so. The same holds for engines with noise and for split prefill and decode.
func Upper(a *compare.Arena, load float64, seed uint64) (*Bound, error) {
	cfg, demands, err := trace(a, load, seed)
	if err != nil {
		return nil, fmt.Errorf("%s at %g, seed %d: no bound: %w", a.Scenario.Name, load, seed, err)
	}
	var pool []kind
	for i := range cfg.Nodes {
		n := &cfg.Nodes[i]
		if n.Engine.Noise > 0 || n.Role != fleet.RoleBoth {
			return nil, fmt.Errorf("%s: no bound: engines have noise, or split prefill and decode", a.Scenario.Name)
		}
		states, err := floors(cfg, i)
		if err != nil {
			return nil, err
		}
		if k := slices.IndexFunc(pool, func(k kind) bool { return slices.Equal(k.states, states) }); k >= 0 {
			pool[k].engines++
		} else {
			pool = append(pool, kind{states: states, engines: 1, weight: 1})
		}
	}
	return bound(pool, demands, a.Scenario.Warmup, cfg.Duration), nil
}

// kind is equal engines.
type kind struct {
	states  []floor
	engines float64
	weight  float64 // of a second of theirs
}

func bound(pool []kind, demands []demand, from, until time.Duration) *Bound {
	b := &Bound{}
	weigh(pool, demands)
	var able []need
	for i := range demands {
		r := &demands[i]
		if r.at < from || until > 0 && r.at >= until {
			continue
		}
		b.Requests++
		if n := needOf(pool, r); n.able {
			able = append(able, n)
		}
	}
	if b.Requests == 0 {
		return b
	}
	most := len(able)
	if most > 0 {
		var sum float64
		for i := range pool {
			sum += pool[i].weight * pool[i].engines
		}
		span := able[len(able)-1].at - able[0].at + 1
		for d := span; d == span || d > time.Second/8; d /= 2 {
			for _, all := range []bool{false, true} {
				most = min(most, packed(able, d, sum, all))
			}
		}
	}
	b.Alone, b.Attainment = float64(len(able))/float64(b.Requests), float64(most)/float64(b.Requests)
	return b
}

// demand is a request as the bound sees it.
type demand struct {
	at                       time.Duration
	prompt, output, uncached int // tokens; uncached: that no earlier request brought
	slo                      request.SLO
}

// contexts is the sum of the context over the decoded tokens after the first, at least.
func (r *demand) contexts() float64 {
	n := float64(r.output - 1)
	return n*float64(r.prompt) + n*(n-1)/2
}

// need is a request's share of the pool.
type need struct {
	at           time.Duration
	able         bool
	prefill, all float64       // weighted seconds
	first, end   time.Duration // after at, when either must be done; 0: whenever
}

func needOf(pool []kind, r *demand) need {
	n := need{at: r.at, prefill: math.Inf(1), all: math.Inf(1)}
	for e := range pool {
		w := pool[e].weight
		for i := range pool[e].states {
			f := &pool[e].states[i]
			n.able = n.able || f.able(r)
			prefill, decode := f.work(r)
			n.prefill, n.all = min(n.prefill, w*prefill), min(n.all, w*(prefill+decode))
		}
	}
	n.prefill, n.all = n.prefill*(1-slack), n.all*(1-slack)
	s := &r.slo
	n.first = s.TTFT
	if s.E2E > 0 && (s.TTFT == 0 || s.E2E < s.TTFT) {
		n.first = s.E2E
	}
	if s.TTFT > 0 && s.ITL > 0 {
		n.end = s.TTFT + time.Duration(r.output-1)*s.ITL
	}
	if s.E2E > 0 && (n.end == 0 || s.E2E < n.end) {
		n.end = s.E2E
	}
	return n
}

// weigh gives engines weights so that the work of the mean request is about the same on each.
func weigh(pool []kind, demands []demand) {
	for e := range pool {
		var sum float64
		for i := range demands {
			least := math.Inf(1)
			for k := range pool[e].states {
				prefill, decode := pool[e].states[k].work(&demands[i])
				least = min(least, prefill+decode)
			}
			sum += least
		}
		if sum > 0 {
			pool[e].weight = float64(len(demands)) / sum
		}
	}
}

// packed bounds how many of the needs can be met, interval by interval of length d; weights sum to sum.
func packed(needs []need, d time.Duration, sum float64, all bool) int {
	total := 0
	for len(needs) > 0 {
		end := needs[0].at + d
		k := 0
		for k < len(needs) && needs[k].at < end {
			k++
		}
		total += fitting(needs[:k], d, sum, all)
		needs = needs[k:]
	}
	return total
}

func fitting(needs []need, d time.Duration, sum float64, all bool) int {
	var costs []float64
	n, longest := 0, time.Duration(0)
	for i := range needs {
		by, cost := needs[i].first, needs[i].prefill
		if all {
			by, cost = needs[i].end, needs[i].all
		}
		if by == 0 {
			n++ // whenever
			continue
		}
		longest = max(longest, by)
		costs = append(costs, cost)
	}
	slices.Sort(costs)
	left := (d + longest).Seconds() * sum
	for _, c := range costs {
		if left -= c; left < 0 {
			break
		}
		n++
	}
	return n
}

// trace reads all requests of a run, in order.
func trace(a *compare.Arena, load float64, seed uint64) (*cluster.Config, []demand, error) {
	cfg, err := a.Scenario.Cluster(a.Table)
	if err != nil {
		return nil, nil, err
	}
	src, err := a.Scenario.Source(workload.Options{Seed: seed, Load: load, Trace: a.Trace})
	if err != nil {
		return nil, nil, err
	}
	anyOrder := cfg.Adapters > 0 // waiting for an adapter, a request can be overtaken
	for i := range cfg.Nodes {
		anyOrder = anyOrder || cfg.Nodes[i].Engine.PriorityScheduling
	}
	var demands []demand
	var lent []int              // blocks of a request that later ones share
	brought := map[uint64]int{} // blocks, by the request that brought them first
	for {
		var j cluster.Job
		if !src.Next(&j) || cfg.Duration > 0 && j.At >= cfg.Duration {
			break
		}
		if j.Then != nil {
			return nil, nil, fmt.Errorf("clients wait for answers before they go on, so what arrives depends on the policy")
		}
		r := demand{at: max(j.At, 0), prompt: j.PromptTokens, output: j.OutputTokens, slo: j.SLO}
		chain := j.Blocks[:min(len(j.Blocks), (j.PromptTokens+j.OutputTokens)/blockTokens)]
		n := known(chain, brought)
		r.uncached = r.prompt - reusable(n, r.prompt)
		for k, b := range chain[:n] {
			if !anyOrder {
				break
			}
			lent[brought[b]] = max(lent[brought[b]], k+1)
		}
		for _, b := range chain[n:] {
			brought[b] = len(demands)
		}
		demands, lent = append(demands, r), append(lent, 0)
	}
	if anyOrder { // whoever shares a block may have computed it
		for i, n := range lent {
			r := &demands[i]
			r.uncached = min(r.uncached, r.prompt-reusable(n, r.prompt))
		}
	}
	if len(demands) == 0 {
		return nil, nil, fmt.Errorf("no request")
	}
	return &cfg, demands, nil
}

const blockTokens = 16 // of the chains of jobs

// known is how many of a chain's first blocks were brought: a hash stands for all before it, so what was
// brought of a chain is its beginning.
func known(chain []uint64, brought map[uint64]int) int {
	return sort.Search(len(chain), func(i int) bool {
		_, ok := brought[chain[i]]
		return !ok
	})
}

// reusable is how many tokens of a prompt so many blocks spare; engines compute the last one themselves.
func reusable(blocks, prompt int) int { return min(blocks, (prompt-1)/blockTokens) * blockTokens }
