package adaptive

import (
	"fmt"
	"time"

	"github.com/presage-router/presage/router"
)

// Options are what a policy is made of. [Defaults] gives the published ones, to be changed.
type Options struct {
	Name        string // empty: adaptive
	Fallbacks   int    // further endpoints named in a decision
	Filters     []router.Filter
	Scorers     []Part             // of both categories, by distinct names
	Static      map[string]float64 // by scorer, absent is 0: the fixed weights that picks are compared with
	Watches     []Watch            // by distinct names of detectors
	Curve       Curve
	PeakPrefill float64 // prefill throughput of one endpoint, tokens per second, above 0
}

// PeakPrefill is the prefill throughput of one endpoint where none is given (llm-d-router's
// peakPrefillThroughput), in tokens per second.
const PeakPrefill = 15_928

// workWindow is the prefill work ahead, in seconds of an endpoint's peak, from which the token load
// score is 0.
const workWindow = 2

// Defaults are options chosen in the lab. Halved or doubled, hardly any of these figures moves the
// attainment of the scenarios herd, bursts, tenants and codechat by a point; those that do are the
// thresholds of burst and imbalance, doubled, and what makes burst slower to tell. The
// comparison, and that of the constants, is go test ./lab/workload -run Adaptive -v -vary.
//
// Two figures are tied: at the highest share of distribution the load scorer outweighs a whole prompt
// in the cache, or else a wave with one common prompt would follow its first request after all.
// Detectors have state: each policy needs options of its own.
func Defaults(p router.Params) Options {
	peak := p.PeakPrefill
	if peak == 0 {
		peak = PeakPrefill
	}
	return Options{
		Fallbacks: p.Fallbacks,
		Filters:   []router.Filter{router.FreshFilter{}},
		Scorers: []Part{
			{router.PrefixScorer{}, 4},
			{router.LoRAScorer{}, 1},
			{router.QueueScorer{}, 2},
			{router.RunningScorer{}, 0.1},
			{LoadScorer{}, 2},
			{router.TokensScorer{Capacity: workWindow * peak}, 4},
			{router.KVScorer{}, 4},
		},
		Static: map[string]float64{"prefix": 3, "queue": 2, "kv": 2},
		Watches: []Watch{
			{Detector: Imbalance{Work: 1}, Toward: router.Distribution, Gain: 2,
				Up: 300 * time.Millisecond, Down: 5 * time.Second, Enter: 0.55, Exit: 0.3, Dwell: 10 * time.Minute},
			{Detector: &Burst{Window: 500 * time.Millisecond, Memory: 5 * time.Second}, Toward: router.Distribution, Gain: 2,
				Up: 20 * time.Millisecond, Down: 5 * time.Second, Enter: 0.25, Exit: 0.1, Dwell: 5 * time.Second},
			{Detector: Pressure{}, Toward: router.Affinity, Gain: 0.3,
				Up: time.Second, Down: 15 * time.Second, Enter: 0.8, Exit: 0.6, Dwell: 10 * time.Second},
			{Detector: &Cache{Memory: 30 * time.Second}, Toward: router.Affinity, Gain: 0.15,
				Up: time.Second, Down: 15 * time.Second, Enter: 0.3, Exit: 0.2, Dwell: 10 * time.Second},
		},
		Curve:       Curve{Low: 0.4, High: 0.95, Slope: 8, Centre: 0.1, Skew: 1},
		PeakPrefill: peak,
	}
}

func (o *Options) check() error {
	if !(o.PeakPrefill > 0) { //nolint:staticcheck // NaN must fail too
		return fmt.Errorf("peak prefill: %v tokens per second: not above 0", o.PeakPrefill)
	}
	names := map[string]bool{}
	for i := range o.Watches {
		w := &o.Watches[i]
		if w.Detector == nil {
			return fmt.Errorf("watches[%d]: no detector", i)
		}
		name := w.Detector.Name()
		switch {
		case names[name]:
			return fmt.Errorf("watches.%s: given twice", name)
		case !(w.Gain > 0 && w.Gain <= 100): //nolint:staticcheck // NaN must fail too
			return fmt.Errorf("watches.%s: gain %v: not above 0 and at most 100", name, w.Gain)
		case !(w.Exit >= 0 && w.Exit < w.Enter && w.Enter <= 1): //nolint:staticcheck // NaN must fail too
			return fmt.Errorf("watches.%s: exits at %v and enters at %v: not rising within 0 and 1", name, w.Exit, w.Enter)
		case w.Up < 0 || w.Down < w.Up || w.Dwell < 0:
			return fmt.Errorf("watches.%s: up %v, down %v, dwell %v: none may be negative, nor up be slower than down", name, w.Up, w.Down, w.Dwell)
		}
		names[name] = true
	}
	scorers := map[string]bool{}
	for i, p := range o.Scorers {
		if p.Scorer == nil {
			return fmt.Errorf("scorers[%d]: none given", i)
		}
		scorers[p.Scorer.Name()] = true
	}
	for name := range o.Static {
		if !scorers[name] {
			return fmt.Errorf("static.%s: no such scorer", name)
		}
	}
	return o.Curve.check()
}

// Recipe makes the policy with its published options, for registries of policies.
func Recipe() router.Recipe {
	return router.Recipe{
		About: "scorers whose weights follow detectors of imbalance, bursts, pressure and cache hits",
		New:   func(p router.Params) (router.Policy, error) { return New(Defaults(p)) },
	}
}
