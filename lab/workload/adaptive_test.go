package workload

import (
	"flag"
	"slices"
	"testing"

	"github.com/presage-router/presage/internal/stat"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/adaptive"
	"github.com/presage-router/presage/router/baseline"
)

var seeds = flag.Int("seeds", 2, "pairs of runs of the comparison of the adaptive policy with fixed weights")

// hotPrefix is one new 8k prompt that 125 users go on asking about.
const hotPrefix = `
name: hot-prefix
about: 125 users who all ask about one 8k prompt
expects: one engine has the prompt first, and everybody follows it
duration: 60s
warmup: 10s
fleet:
  - {count: 8, gpu: H100, model: llama-3.1-8b, tp: 1}
slo: {ttft: 1s, itl: 30ms}
traffic:
  - class: hot
    arrivals: [{closed: {users: 125}}]
    prefix: [{tokens: 8192}]
    prompt: 200
    output: 200
`

// outcome is what a policy made of a scenario.
type outcome struct {
	attainment float64 // percent
	p90        float64 // of TTFT, ms
	switches   uint64
	changed    float64 // percent of the picks that static weights would have made otherwise
}

func play(t *testing.T, s *Scenario, load float64, seed uint64, p router.Policy) outcome {
	t.Helper()
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Cluster(table)
	if err != nil {
		t.Fatal(err)
	}
	src, err := s.Source(Options{Seed: seed, Load: load})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Policy, cfg.Seed = p, seed
	var ttft []float64
	met := 0
	if _, err = cluster.Run(cfg, src, func(r *cluster.Record) {
		if r.Sent < s.Warmup {
			return
		}
		ttft = append(ttft, float64(r.TTFT.Microseconds())/1000)
		if r.Met {
			met++
		}
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(ttft)
	o := outcome{attainment: 100 * float64(met) / float64(len(ttft)), p90: stat.Quantile(ttft, 0.9)}
	if a, ok := p.(*adaptive.Policy); ok {
		st := a.Status()
		o.switches = st.Switches[0] + st.Switches[1]
		o.changed = 100 * float64(st.Differing) / float64(st.Picks)
	}
	return o
}

// TestAdaptiveAgainstFixedWeights plays the same arrivals under the adaptive policy and under fixed
// weights: herds must go better by far, a load with nothing to adapt to not worse. With -v it prints the
// comparison, over -seeds pairs.
func TestAdaptiveAgainstFixedWeights(t *testing.T) {
	hot, err := Parse("hot-prefix.yaml", []byte(hotPrefix))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		load     float64
		gain     float64 // attainment, at least, percentage points
		p90      float64 // TTFT, at most, of that under fixed weights
		switches uint64  // at most; 0 where nothing is stationary
	}{
		{"herd", 1, 50, 0.5, 0},
		{"hot-prefix", 1, 50, 0.5, 0},
		{"steady", 0.8, -1, 1, 1},
		{"tenants", 0.8, -1, 1.5, 1},
		{"codechat", 0.8, -1, 1.5, 1},
	} {
		s := hot
		if c.name != hot.Name {
			if s, err = Builtin(c.name); err != nil {
				t.Fatal(err)
			}
		}
		if *seeds <= 2 {
			s.Duration, s.Warmup = s.Duration/3, s.Warmup/3 // as a test; a figure needs the whole
		}
		var fixed, adapted, fixed90, adapted90, changed []float64
		for seed := range uint64(*seeds) {
			w, err := baseline.Policies().New("weighted", router.Params{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			a, err := adaptive.New(adaptive.Defaults(router.Params{}))
			if err != nil {
				t.Fatal(err)
			}
			f, d := play(t, s, c.load, 901+seed, w), play(t, s, c.load, 901+seed, a)
			fixed, adapted = append(fixed, f.attainment), append(adapted, d.attainment)
			fixed90, adapted90 = append(fixed90, f.p90), append(adapted90, d.p90)
			changed = append(changed, d.changed)
			if c.switches > 0 && d.switches > c.switches {
				t.Errorf("%s at %v, seed %d: %d switches", c.name, c.load, seed, d.switches)
			}
		}
		gain, p90 := stat.PairedDifference(adapted, fixed, 0.95), stat.PairedDifference(adapted90, fixed90, 0.95)
		t.Logf("%-10s load %.1f  attainment %6.2f %% fixed, %6.2f adaptive, %+.2f [%.2f, %.2f]  TTFT p90 %5.0f ms fixed, %5.0f adaptive, %+.0f [%.0f, %.0f]  %.0f %% of the picks changed",
			c.name, c.load, stat.Mean(fixed), stat.Mean(adapted), gain.Mean, gain.Low, gain.High,
			stat.Mean(fixed90), stat.Mean(adapted90), p90.Mean, p90.Low, p90.High, stat.Mean(changed))
		if !(gain.Mean >= c.gain && stat.Mean(adapted90) <= c.p90*stat.Mean(fixed90)) { //nolint:staticcheck // NaN must fail too
			t.Errorf("%s at %v: attainment %v over %v, TTFT p90 %v over %v", c.name, c.load, adapted, fixed, adapted90, fixed90)
		}
	}
}

// TestAdaptiveUnderSpikes plays the scenario hot-prefix-spikes: in the middle of its spikes the TTFT that
// nine of ten requests keep must be a fraction of that under fixed weights, and the few users in between
// must not pay for it; the first spike pays for prompts on more engines. With -v it prints every spike, over -seeds pairs.
func TestAdaptiveUnderSpikes(t *testing.T) {
	s, err := Builtin("hot-prefix-spikes")
	if err != nil {
		t.Fatal(err)
	}
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var classes []string
	for i := range s.Traffic {
		classes = append(classes, s.Traffic[i].Class)
	}
	var changed []float64            // percent of the picks
	p90 := map[string][2][]float64{} // by class: TTFT in ms under fixed weights and adapted ones, by seed
	for seed := range uint64(*seeds) {
		w, err := baseline.Policies().New("weighted", router.Params{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		a, err := adaptive.New(adaptive.Defaults(router.Params{}))
		if err != nil {
			t.Fatal(err)
		}
		for side, p := range [2]router.Policy{w, a} {
			cfg, err := s.Cluster(table)
			if err != nil {
				t.Fatal(err)
			}
			src, err := s.Source(Options{Seed: 901 + seed})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Policy, cfg.Seed = p, 901+seed
			ttft := map[string][]float64{}
			if _, err = cluster.Run(cfg, src, func(r *cluster.Record) {
				ttft[r.Class] = append(ttft[r.Class], float64(r.TTFT.Microseconds())/1000)
			}); err != nil {
				t.Fatal(err)
			}
			for _, c := range classes {
				slices.Sort(ttft[c])
				both := p90[c]
				both[side] = append(both[side], stat.Quantile(ttft[c], 0.9))
				p90[c] = both
			}
		}
		st := a.Status()
		changed = append(changed, 100*float64(st.Differing)/float64(st.Picks))
	}
	t.Logf("%.0f %% of the picks changed", stat.Mean(changed))
	for _, c := range classes {
		fixed, adapted := stat.Mean(p90[c][0]), stat.Mean(p90[c][1])
		d := stat.PairedDifference(p90[c][1], p90[c][0], 0.95)
		t.Logf("%-10s  TTFT p90 %6.0f ms fixed, %6.0f adaptive, %+.0f [%.0f, %.0f]", c, fixed, adapted, d.Mean, d.Low, d.High)
		limit := fixed
		switch c {
		case "spike-25": // the price: the other engines compute the prompt then, once
			limit = 300
		case "spike-100", "spike-200", "spike-400":
			limit = 0.5 * fixed
		}
		if !(adapted <= limit) { //nolint:staticcheck // NaN must fail too
			t.Errorf("%s: %v ms under adapted weights, %v under fixed ones", c, p90[c][1], p90[c][0])
		}
	}
}
