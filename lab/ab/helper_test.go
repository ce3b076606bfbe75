package ab

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/features/request"
)

var t0 = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// traffic makes the records of an experiment whose truth is known.
type traffic struct {
	blocks   int
	length   time.Duration
	washout  time.Duration // left without an arm, as the service does
	requests int           // per block
	inSLO    float64       // of the control, mean over blocks
	effect   float64       // of arm a on it, as a share
	sway     float64       // standard deviation of the blocks' own levels
	memory   float64       // correlation of neighbouring blocks' levels
	carry    float64       // how much of the effect of a leaks into the first half of the next block
	split    string        // session or request: no blocks, cells of length
	surge    float64       // by how much more requests meet arm a
	policyB  string
	noSLO    bool
	third    bool // every other block of b belongs to c
}

// observe sends each record, in order of time, but for the order within a second. They belong to each until it returns.
func (w *traffic) observe(seed uint64, each func(*features.Observation)) {
	rng := rand.New(rand.NewPCG(seed, 77))
	level, before := rng.NormFloat64()*w.sway, ""
	var order [2]string
	o := *record(t0, "", "")
	var id []byte
	for k := range w.blocks {
		level = w.memory*level + math.Sqrt(1-w.memory*w.memory)*w.sway*rng.NormFloat64()
		if k%2 == 0 {
			order = [2]string{"a", "b"}
			if rng.IntN(2) == 0 {
				order = [2]string{"b", "a"}
			}
		}
		block := order[k%2]
		n := w.requests
		if block == "a" {
			n += int(w.surge * float64(n))
		}
		for i := range n {
			into := time.Duration(float64(w.length) * (float64(i) + rng.Float64()) / float64(n))
			id = strconv.AppendUint(append(id[:0], "d-"...), seed<<32|uint64(k*w.requests+i), 36)
			o.At, o.Arm, o.ID = t0.Add(time.Duration(k)*w.length+into), block, string(id)
			if w.split != "" {
				session := mix(seed<<32 ^ uint64(k*w.requests+i)/5)
				if w.split == "session" {
					o.Session = session
				} else {
					session = rng.Uint64()
				}
				if o.Arm = "a"; session&1 == 0 {
					o.Arm = "b"
				}
			}
			p := w.inSLO + level
			if o.Arm == "a" {
				p += w.effect
			}
			if w.carry > 0 && before == "a" && o.Arm == "b" && into < w.length/2 {
				p += w.carry
			}
			if into < w.washout {
				o.Arm = ""
			}
			o.TTFT = time.Duration(float64(80*time.Millisecond) * math.Exp(0.3*rng.NormFloat64()))
			if rng.Float64() >= p {
				o.TTFT += time.Second
			}
			if o.Policy = "predictive"; block == "b" {
				o.Policy = w.policyB
			}
			if w.noSLO {
				o.SLO = request.SLO{}
			}
			if w.third && o.Arm == "b" && k/2%2 == 0 {
				o.Arm = "c"
			}
			each(&o)
		}
		before = block
	}
}

func record(at time.Time, arm, id string) *features.Observation {
	return &features.Observation{
		ID: id, At: at, API: request.Chat, Model: "m", Stream: true, SLO: request.SLO{TTFT: time.Second}, Endpoint: "e0", Picked: "e0",
		Policy: "predictive", Arm: arm, Propensity: 1, PromptTokens: 500, CachedTokens: 100, OutputTokens: 20, TTFT: 80 * time.Millisecond,
		ITL: 10 * time.Millisecond, E2E: 2 * time.Second, Cause: fleet.Complete, Status: 200, Said: features.Nothing(),
	}
}

// usual is a switchback of 24 pairs.
func usual() traffic {
	return traffic{blocks: 48, length: 5 * time.Minute, washout: 30 * time.Second, requests: 200, inSLO: 0.8, sway: 0.03, policyB: "weighted"}
}

// result reads what was observed.
func (w *traffic) result(t testing.TB, seed uint64, o Options) *Result {
	t.Helper()
	var s Survey
	w.observe(seed, func(o *features.Observation) {
		if err := s.Add(0, o); err != nil {
			t.Fatal(err)
		}
	})
	p, err := s.Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	l := p.Ledger()
	w.observe(seed, l.Add)
	return l.Result()
}

func (r *Result) primary(t testing.TB) *Paired {
	t.Helper()
	if len(r.Paired) == 0 || r.Paired[0].Metric != "slo_attainment" {
		t.Fatalf("%+v", r)
	}
	return &r.Paired[0]
}

func (r *Result) check(name string) *Check {
	for i := range r.Checks {
		if r.Checks[i].Name == name {
			return &r.Checks[i].Check
		}
	}
	return &Check{}
}
