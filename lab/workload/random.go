package workload

import (
	"math"
	"math/rand/v2"
	"slices"
)

// stream returns the random stream of one aspect of one run: equal seeds and labels give equal
// streams, different labels independent ones.
func stream(seed uint64, label ...string) *rand.Rand { return rand.New(pcg(seed, label...)) }

func pcg(seed uint64, label ...string) *rand.PCG {
	h := uint64(0x9e3779b97f4a7c15)
	for _, l := range label {
		for i := range len(l) {
			h = mix(h ^ uint64(l[i]))
		}
		h = mix(h + boundary)
	}
	return rand.NewPCG(mix(seed), h)
}

// boundary ends a label within a hash: it is no byte, and no number that is counted to.
const boundary = 0xff51afd7ed558ccd

// mix is the finaliser of SplitMix64 (Steele et al. 2014): a bijection of 64 bits without visible
// structure.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Pick chooses one of n things by number.
type Pick struct {
	Kind string  // uniform, zipf or cycle
	S    float64 // exponent of zipf: thing k, from 1, has weight 1/k^S
}

// picker draws from a Pick.
type picker struct {
	n      int
	rng    *rand.Rand
	sums   []float64 // of the weights, for zipf
	cycled int
	cycle  bool
}

func newPicker(p Pick, n int, rng *rand.Rand) *picker {
	out := &picker{n: n, rng: rng, cycle: p.Kind == "cycle"}
	if p.Kind == "zipf" {
		out.sums = zipfSums(n, p.S)
	}
	return out
}

// next is a number from 0 to n-1.
func (p *picker) next() int {
	switch {
	case p.cycle:
		k := p.cycled
		p.cycled = (p.cycled + 1) % p.n
		return k
	case p.sums != nil:
		k, _ := slices.BinarySearch(p.sums, p.rng.Float64()*p.sums[p.n-1])
		return min(k, p.n-1)
	}
	return p.rng.IntN(p.n)
}

// parsePick reads "uniform", "cycle" or {zipf: 1.1}.
func parsePick(v *node) Pick {
	if !v.there() {
		return Pick{Kind: "uniform"}
	}
	if len(v.pairs()) == 0 {
		return Pick{Kind: v.choice("uniform", "cycle")}
	}
	kind, arg := v.only("zipf")
	if arg == nil {
		return Pick{}
	}
	return Pick{Kind: kind, S: arg.number(0, 10)}
}

// zipfSums are the running sums of 1/k^s for k = 1..n.
func zipfSums(n int, s float64) []float64 {
	sums := make([]float64, n)
	sum := 0.0
	for k := range sums {
		sum += math.Pow(float64(k+1), -s)
		sums[k] = sum
	}
	return sums
}

// with is a picker of the same things that draws from another stream.
func (p *picker) with(rng *rand.Rand) *picker {
	q := *p
	q.rng, q.cycled = rng, 0
	return &q
}
