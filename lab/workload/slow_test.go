package workload

import (
	"testing"
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/predictive"
)

// TestSlowEndpointLosesItsShare: when one of eight engines becomes three times slower, the predictive
// policy, without anybody who ejects endpoints, moves its share of the requests to where it stays within
// 15 s. The share counts as there from when on no more than a fifth of the fall is left, in windows of 5 s
// of the requests of eight seeds together: those of one are forty, which chance moves too far.
func TestSlowEndpointLosesItsShare(t *testing.T) {
	const (
		window = 5 * time.Second
		bound  = 15 * time.Second
		target = 3 // the engine
	)
	s, err := Builtin("slow-endpoint")
	if err != nil {
		t.Fatal(err)
	}
	slowed := s.Events[0].At
	s.Duration = slowed + 100*time.Second
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	all, there := make([]float64, s.Duration/window), make([]float64, s.Duration/window)
	for n := range uint64(8) {
		cfg, err := s.Cluster(table)
		if err != nil {
			t.Fatal(err)
		}
		src, err := s.Source(Options{Seed: 3001 + n})
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Policy, err = predictive.Recipes()["predictive"].New(router.Params{Seed: n}); err != nil {
			t.Fatal(err)
		}
		cfg.Seed = 3001 + n
		cfg.Learner = predictor.NewLearner(predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}}) // which rank nothing
		if _, err := cluster.Run(cfg, src, func(r *cluster.Record) {
			if w := int(r.Sent / window); w < len(all) {
				all[w]++
				if r.Node == target {
					there[w]++
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	share := func(from, until time.Duration) float64 {
		var a, b float64
		for w := from / window; w < until/window; w++ {
			a, b = a+all[w], b+there[w]
		}
		return b / a
	}
	before, final := share(s.Warmup, slowed), share(s.Duration-30*time.Second, s.Duration)
	if !(before > 0.08 && final < before/2) { //nolint:staticcheck // NaN must fail too
		t.Fatalf("share %.3f before, %.3f in the end: nothing to correct", before, final)
	}
	took := time.Duration(0) // until the end of the last window that is not there yet
	for at := slowed; at < s.Duration; at += window {
		v := share(at, at+window)
		t.Logf("from %3.0f s on: %4.1f %%", (at - slowed).Seconds(), 100*v)
		if v > final+(before-final)/5 {
			took = at + window - slowed
		}
	}
	t.Logf("%.1f %% before, %.1f %% in the end, corrected after %v", 100*before, 100*final, took)
	if took > bound {
		t.Errorf("corrected only after %v", took)
	}
}
