package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
)

type resultsCommand struct {
	Scenarios string  `placeholder:"A,B" help:"Scenarios, all loads of each; default: the ten of docs/policies.md."`
	Ours      string  `default:"predictive" help:"Policy held against the others."`
	Others    string  `placeholder:"A,B" help:"Policies of which the best is chosen, load by load, on other seeds than those compared; default: all published ones."`
	Also      string  `placeholder:"A,B" help:"Policies compared at every load beside the best; default: argmin-ttft, adaptive, round-robin."`
	Seeds     int     `default:"8" help:"Seeds compared."`
	Seed      uint64  `default:"1001" help:"First of them."`
	Choose    int     `default:"3" help:"Seeds on which the best baseline is chosen."`
	Chosen    uint64  `default:"501" help:"First of them."`
	MaxLoad   float64 `default:"0" help:"Highest load played; 0: all."`
	Data      string  `env:"PRESAGE_DATA" default:"../shared/data" placeholder:"DIR" help:"Folder with the traces that scenarios replay; those whose trace is missing are left out."`
	Workers   int     `default:"2" help:"Runs at a time."`
	Out       string  `placeholder:"FILE" help:"Write the tables there, as Markdown."`
	JSON      bool    `name:"json" help:"Print one JSON object on the last line."`
}

var (
	tenScenarios = []string{"herd", "tenants", "codechat", "reasoning", "mixed-gpus", "mixed-sizes", "bursts", "shift", "slow-endpoint", "mooncake"}
	published    = []string{
		"round-robin", "least-request", "p2c", "weighted", "llmd-sticky-token", "llmd-active", "llmd-predicted", "dynamo-linear",
		"lmetric", "smg-cache-aware", "smg-least-load", "gorgo-2d", "aibrix-prefix",
	}
	beside = []string{"argmin-ttft", "adaptive", "round-robin"}
)

// orElse is the list that a flag gives, or the usual one.
func orElse(text string, usual []string) []string {
	if text == "" {
		return usual
	}
	return policyList(text)
}

// traces are the files that scenarios replay, below the data folder.
var traces = map[string]string{
	"mooncake": "mooncake/conversation.jsonl.gz",
	"azure":    "azure/azure2023_conv.csv.gz",
	"servegen": "servegen/m-small_rates.csv.gz",
	"agentic":  "agentic/tau2_retail_10.jsonl.gz",
}

// Run plays every scenario and judges the whole.
func (c *resultsCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	table, err := engine.Builtin()
	if err != nil {
		return err
	}
	registry := serve.Policies()
	var cells []compare.Cell
	for _, name := range orElse(c.Scenarios, tenScenarios) {
		s, err := workload.Open(name)
		if err != nil {
			return command.Usage(err)
		}
		trace := ""
		if s.NeedsTrace() {
			trace = filepath.Join(c.Data, traces[name])
			if _, err := os.Stat(trace); err != nil {
				t.Result("%s left out: its trace %s is not there", name, trace)
				continue
			}
		}
		contest := compare.Contest{
			Arena: arena(s, table, trace, registry), Ours: c.Ours, Others: orElse(c.Others, published), Also: orElse(c.Also, beside),
			Loads: loadsOf(s, c.MaxLoad), Choose: seedsFrom(c.Chosen, c.Choose), Compare: seedsFrom(c.Seed, c.Seeds), Workers: c.Workers,
			Progress: func(done, total int) { t.Progress(time.Now(), fmt.Sprintf("%s: run %d of %d", name, done, total)) },
		}
		got, err := contest.Run(ctx)
		cells = append(cells, got...)
		if err != nil {
			return err
		}
		t.Result("")
		t.Result("%s", compare.Markdown(got))
	}
	sustained := compare.Sustained(cells)
	gates := compare.Gates(sustained)
	text := compare.Markdown(cells) + "\n" + compare.MarkdownGates(gates)
	t.Result("%s", compare.MarkdownGates(gates))
	if c.Out != "" {
		if err := os.WriteFile(c.Out, []byte(text), 0o644); err != nil { //nolint:gosec // a report is for everybody
			return err
		}
	}
	if c.JSON {
		return t.JSON(map[string]any{"cells": cells, "gates": gates})
	}
	return nil
}

func loadsOf(s *workload.Scenario, most float64) []float64 {
	loads := s.Loads
	if len(loads) == 0 {
		loads = []float64{1}
	}
	var kept []float64
	for _, l := range loads {
		if most <= 0 || l <= most {
			kept = append(kept, l)
		}
	}
	return kept
}

func seedsFrom(first uint64, n int) []uint64 {
	var s []uint64
	for i := range n {
		s = append(s, first+uint64(i))
	}
	return s
}
