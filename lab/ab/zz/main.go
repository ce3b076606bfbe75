package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/baseline"
	"github.com/presage-router/presage/router/experiment"
	"github.com/presage-router/presage/router/predictive"
)

type sink struct{ w *observations.Writer }

func (s sink) Observe(o *features.Observation) {
	if err := s.w.Write(o); err != nil {
		panic(err)
	}
}

func main() {
	// out scenario minutes block washout unit armA armB load explore
	a := os.Args
	s, err := workload.Builtin(a[2])
	chk(err)
	min, _ := strconv.Atoi(a[3])
	block, _ := time.ParseDuration(a[4])
	wash, _ := time.ParseDuration(a[5])
	load, _ := strconv.ParseFloat(a[9], 64)
	expl, _ := strconv.ParseFloat(a[10], 64)
	s.Duration = time.Duration(min) * time.Minute
	s.Events = nil
	table, err := engine.Builtin()
	chk(err)
	cfg, err := s.Cluster(table)
	chk(err)
	src, err := s.Source(workload.Options{Seed: 3, Load: load})
	chk(err)
	unit := map[string]experiment.Unit{"block": experiment.ByBlock, "session": experiment.BySession, "request": experiment.ByRequest}[a[6]]
	mk := func(n string) router.Policy {
		reg := baseline.Policies()
		for k, v := range predictive.Recipes() {
			reg[k] = v
		}
		p, err := reg.New(n, router.Params{Seed: 1})
		chk(err)
		return p
	}
	pa := mk(a[7])
	if expl > 0 {
		pa, err = experiment.NewExplorer(pa, expl)
		chk(err)
	}
	nb := a[8]
	if nb == a[7] {
		nb += "-again"
	}
	e, err := experiment.New(experiment.Options{Unit: unit, Length: block, Washout: wash, Seed: 1,
		Arms: []experiment.Arm{{Name: a[7], Share: .5, Policy: pa}, {Name: nb, Share: .5, Policy: mk(a[8])}}})
	chk(err)
	w, err := observations.Create(a[1])
	chk(err)
	cfg.Policy, cfg.Seed, cfg.Observer = e, 3, sink{w}
	cfg.Learner = predictor.NewLearner(predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}})
	t := time.Now()
	rep, err := cluster.Run(cfg, src, func(*cluster.Record) {})
	chk(err)
	chk(w.Commit())
	fmt.Println(rep.Requests, rep.Met, time.Since(t))
}
func chk(err error) {
	if err != nil {
		panic(err)
	}
}
