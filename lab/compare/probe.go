package compare

import (
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/foresight"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
)

// Probe watches one run from inside: how forecasts come true, and how load and weights move. Runs that
// are compared have none; it costs about as much as the run itself.
type Probe struct {
	Every int           // decisions between two whose forecasts are checked against clones of engines; 0: 20
	Step  time.Duration // between two points of the timeline; 0: 2 s

	// Filled by [Arena.Watch].
	Endpoints       []string
	Chosen, Random  Held            // TTFT on the chosen endpoint and on one drawn at random, without later arrivals
	Lived           Held            // TTFT of all answered requests, as they were
	At              []time.Duration // of the points of the timeline
	Requests        [][]float64     // of ours in flight, by endpoint and point
	Scorers         []string        // of a policy that tunes weights
	Weights         [][]float64     // by scorer and point
	Changed, Picked uint64          // winners that static weights would have changed, of all; by such a policy

	warmup time.Duration
	rng    *rand.Rand
	seer   cluster.Seer // the policy, where it is one
	tuned  *adaptive.Policy

	began   time.Time // the run
	now     time.Duration
	seen    int
	checked bool             // this decision
	drawn   int              // endpoint
	future  foresight.Future // there
	known   bool
	job     cluster.Job
	engines []*engine.Engine
}

// Held counts requests at or under the foretold quantiles.
type Held struct {
	N     int    // requests
	Under [3]int // of them, those at or under the foretold P50, P90 and P99
}

// ForetoldQuantiles are those of [Held].
var ForetoldQuantiles = [3]float64{0.5, 0.9, 0.99}

func (h *Held) add(f *features.Prediction, seconds float64) {
	if !f.Known() || !(seconds > 0) {
		return
	}
	h.N++
	for i, q := range [...]float32{f.P50, f.P90, f.P99} {
		if seconds <= float64(q) {
			h.Under[i]++
		}
	}
}

// Watch plays one policy as [Arena.Play] does, with the probe in it.
func (a *Arena) Watch(policy string, load float64, seed uint64, p *Probe) (*Result, error) {
	return a.play(policy, load, seed, func(cfg *cluster.Config) { p.attach(cfg, a.Scenario.Warmup) })
}

func (p *Probe) attach(cfg *cluster.Config, warmup time.Duration) {
	*p = Probe{Every: p.Every, Step: p.Step, warmup: warmup, rng: rand.New(rand.NewPCG(cfg.Seed, 0x70726f6265)), tuned: adaptive.Of(cfg.Policy)}
	if p.Every <= 0 {
		p.Every = 20
	}
	if p.Step <= 0 {
		p.Step = 2 * time.Second
	}
	p.seer, _ = cfg.Policy.(cluster.Seer)
	cfg.Seer, cfg.Recorder, cfg.Ticker, cfg.Observer = p, p, p, p
}

// See implements [cluster.Seer]: it follows the request on a clone of one engine drawn at random.
func (p *Probe) See(now time.Duration, j *cluster.Job, engines []*engine.Engine) {
	if p.seer != nil {
		p.seer.See(now, j, engines)
	}
	p.now, p.job, p.engines = now, *j, engines
	p.seen++
	p.checked = now >= p.warmup && p.seen%p.Every == 0
	if !p.checked {
		return
	}
	p.drawn = p.rng.IntN(len(engines))
	p.future, p.known = foresight.Foresee(engines[p.drawn], now, j)
}

// Record implements [router.Recorder]: it follows the request on a clone of the chosen engine too.
func (p *Probe) Record(_ router.ID, q *router.Query, d *router.Decision) {
	if p.began.IsZero() {
		p.began = q.Now.Add(-p.now)
	}
	if !p.checked {
		return
	}
	fore := q.Forecasts()
	if fore == nil {
		return
	}
	if p.known {
		p.Random.add(&fore[p.drawn].TTFT, p.future.TTFT)
	}
	f, known := p.future, p.known
	if d.Index != p.drawn {
		f, known = foresight.Foresee(p.engines[d.Index], p.now, &p.job)
	}
	if known {
		p.Chosen.add(&fore[d.Index].TTFT, f.TTFT)
	}
}

// Tick implements [router.Ticker]: it notes load and weights.
func (p *Probe) Tick(now time.Time, s *fleet.Snapshot) {
	if p.Endpoints == nil {
		p.Requests = make([][]float64, len(s.States))
		for i := range s.States {
			p.Endpoints = append(p.Endpoints, s.States[i].Name)
		}
	}
	if p.began.IsZero() {
		p.began = now
	}
	at := now.Sub(p.began)
	if n := len(p.At); n > 0 && at-p.At[n-1] < p.Step {
		return
	}
	p.At = append(p.At, at)
	for i := range s.States {
		p.Requests[i] = append(p.Requests[i], float64(s.States[i].Requests))
	}
	if p.tuned == nil {
		return
	}
	status := p.tuned.Status()
	if p.Weights == nil {
		p.Weights = make([][]float64, len(status.Weights))
		for _, w := range status.Weights {
			p.Scorers = append(p.Scorers, w.Scorer)
		}
	}
	for i, w := range status.Weights {
		p.Weights[i] = append(p.Weights[i], w.Value)
	}
	p.Changed, p.Picked = status.Differing, status.Picks
}

// Observe implements [router.Observer].
func (p *Probe) Observe(o *features.Observation) {
	if !o.At.Before(p.began.Add(p.warmup)) && o.Comparable() {
		p.Lived.add(&o.Fore.TTFT, o.TTFT.Seconds())
	}
}

var (
	_ cluster.Seer    = (*Probe)(nil)
	_ router.Recorder = (*Probe)(nil)
	_ router.Ticker   = (*Probe)(nil)
	_ router.Observer = (*Probe)(nil)
)
