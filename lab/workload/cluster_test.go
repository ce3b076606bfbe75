package workload

import (
	"testing"
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
)

// The first seconds of every generated scenario, events included, run on the simulated fleet, and
// what a request sends is what its engine gets.
func TestScenariosRun(t *testing.T) {
	table, err := engine.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		s, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.NeedsTrace() {
			continue
		}
		scale := 0.02 // of time
		s.Duration = time.Duration(scale * float64(s.Duration))
		for i := range s.Events {
			s.Events[i].At = time.Duration(scale * float64(s.Events[i].At))
		}
		for i := range s.Traffic {
			s.Traffic[i].From = time.Duration(scale * float64(s.Traffic[i].From))
			s.Traffic[i].Until = time.Duration(scale * float64(s.Traffic[i].Until))
		}
		cfg, err := s.Cluster(table)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Policy, cfg.Seed = baseline.NewRoundRobin(router.Params{Seed: 1}), 1
		src, err := s.Source(Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		classes := map[string]int{}
		rep, err := cluster.Run(cfg, src, func(r *cluster.Record) { classes[r.Class]++ })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(classes) != len(s.Traffic) || rep.Requests < 2 || len(s.Events) == 0 && rep.Complete+rep.Left != rep.Requests {
			t.Errorf("%s: %d requests, %d complete, classes %v", name, rep.Requests, rep.Complete, classes)
		}
	}
}
