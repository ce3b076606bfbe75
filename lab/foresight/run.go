package foresight

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

//go:embed scenarios/*.yaml
var scenarios embed.FS

// Scenario returns one of the scenarios of this package: upgrade or experts.
func Scenario(name string) (*workload.Scenario, error) {
	data, err := scenarios.ReadFile("scenarios/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("%q: no such scenario; use upgrade or experts", name)
	}
	return workload.Parse(name+".yaml", data)
}

// Study is one comparison with the exact engines. Scenario, Table, Policy and Variants must be set.
type Study struct {
	Scenario *workload.Scenario
	Table    engine.Table
	Policy   func(seed uint64) (router.Policy, error) // routes by the forecasts of the first variant
	Variants []Variant
	Learner  predictor.Options // of every variant, but for what it lacks
	Load     float64           // factor on the scenario's rate; 0: 1
	Every    int               // decisions between two that are foreseen; 0: 20
	Spoiled  float64           // share of requests whose labels are multiplied by a random factor between 0.1 and 10
	Noise    float64           // of each engine step: sigma of a log-normal factor
}

// Result is what a run showed.
type Result struct {
	Seed      uint64              `json:"seed"`
	Requests  uint64              `json:"requests"`
	Cancelled uint64              `json:"cancelled"`
	Foreseen  int                 `json:"foreseen"`
	Variants  map[string]*Verdict `json:"variants"`
}

// Verdict is on one variant.
type Verdict struct {
	TTFT      Figures             `json:"ttft"` // what is ranked by: the price of the law
	ITL       Figures             `json:"itl"`
	BlendTTFT Figures             `json:"blend_ttft"` // what is shown and judges SLOs: the medians of the blend
	BlendITL  Figures             `json:"blend_itl"`
	LivedTTFT Figures             `json:"lived_ttft"` // what is ranked by, where later requests arrive as they did in the run
	LivedITL  Figures             `json:"lived_itl"`
	Choice    Choice              `json:"choice"`
	Labels    [2]Labels           `json:"labels"` // TTFT, ITL
	Drift     map[string]Recovery `json:"drift"`  // by GPU type, where all engines change
	Alarms    uint64              `json:"alarms"`
}

// Run plays the scenario once.
func (s *Study) Run(seed uint64) (*Result, error) {
	cfg, err := s.Scenario.Cluster(s.Table)
	if err != nil {
		return nil, err
	}
	load := s.Load
	if load == 0 {
		load = 1
	}
	src, err := s.Scenario.Source(workload.Options{Seed: seed, Load: load})
	if err != nil {
		return nil, err
	}
	for i := range cfg.Nodes {
		cfg.Nodes[i].Engine.Noise = s.Noise
	}
	w := &witness{
		every: max(1, s.Every), from: s.Scenario.Warmup, rng: rand.New(rand.NewPCG(seed, 0x666f7265)), spoiled: s.Spoiled,
		open: map[key]*record{}, labels: make([][2][]label, len(s.Variants)),
	}
	for i := range cfg.Events {
		w.changes = append(w.changes, cfg.Events[i].At)
	}
	for _, v := range s.Variants {
		w.pupils = append(w.pupils, newPupil(v, s.Learner))
	}
	if cfg.Policy, err = s.Policy(seed); err != nil {
		return nil, err
	}
	cfg.Seed, cfg.Seer, cfg.Ticker, cfg.Recorder, cfg.Observer = seed, w, w, w, w
	cfg.Forecast = &w.pupils[0].handle
	report, err := cluster.Run(cfg, src, nil)
	if err == nil {
		err = w.err
	}
	for _, c := range w.crowds {
		for _, f := range c {
			f.end()
		}
	}
	if err != nil {
		return nil, err
	}
	r := &Result{Seed: seed, Requests: report.Requests, Cancelled: report.Left, Foreseen: len(w.cases), Variants: map[string]*Verdict{}}
	for i, v := range s.Variants {
		r.Variants[v.Name] = s.verdict(w, i)
	}
	return r, nil
}

func (s *Study) verdict(w *witness, i int) *Verdict {
	c, l := w.cases, lived(w.cases)
	v := &Verdict{
		TTFT:      figures(look(c, i, floorTTFT, func(f *foretold, y *Future) (float64, float64) { return f.First, y.TTFT })),
		ITL:       figures(look(c, i, 0, func(f *foretold, y *Future) (float64, float64) { return f.Decode, y.ITL })),
		BlendTTFT: figures(look(c, i, floorTTFT, func(f *foretold, y *Future) (float64, float64) { return f.TTFT, y.TTFT })),
		BlendITL:  figures(look(c, i, 0, func(f *foretold, y *Future) (float64, float64) { return f.ITL, y.ITL })),
		LivedTTFT: figures(look(l, i, floorTTFT, func(f *foretold, y *Future) (float64, float64) { return f.First, y.TTFT })),
		LivedITL:  figures(look(l, i, 0, func(f *foretold, y *Future) (float64, float64) { return f.Decode, y.ITL })),
		Choice:    choose(c, i), Drift: map[string]Recovery{}, Alarms: w.pupils[i].Report().Counts.Drifts,
	}
	for t := range v.Labels {
		v.Labels[t] = judged(after(w.labels[i][t], s.Scenario.Warmup))
	}
	if at := s.change(); at > 0 {
		v.Drift = recoveries(w.labels[i][predictor.TTFT], w.labels[0][predictor.TTFT], at)
	}
	return v
}

// lived are the moments whose clones lived on, with what became of them; clones that saw the engines
// change are left out.
func lived(cases []moment) (out []moment) {
	for _, m := range cases {
		if m.lived == nil {
			continue
		}
		m.futures = make([]Future, len(m.lived))
		for i, f := range m.lived {
			if f.done {
				m.futures[i] = f.future
			}
		}
		out = append(out, m)
	}
	return out
}

// change is when all engines change.
func (s *Study) change() time.Duration {
	for i := range s.Scenario.Events {
		if e := &s.Scenario.Events[i]; e.Kind == cluster.Upgrade {
			return e.At
		}
	}
	return 0
}

func after(labels []label, from time.Duration) []label {
	var out []label
	for _, l := range labels {
		if l.at >= from {
			out = append(out, l)
		}
	}
	return out
}
