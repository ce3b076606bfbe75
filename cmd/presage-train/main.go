// Command presage-train judges and makes latency models from recorded requests.
package main

import (
	"context"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
)

func main() {
	command.Main(run)
}

// grammar is the command line. Each command is in a file of its own.
type grammar struct {
	Eval    evalCommand    `cmd:"" help:"Judge the online learner on recorded requests, in order of time."`
	Fit     fitCommand     `cmd:"" help:"Fit a model to logged requests, judge it, and keep it."`
	Promote promoteCommand `cmd:"" help:"Make a model the champion, or go back to the one before."`
	List    listCommand    `cmd:"" help:"List the models of a registry."`
	Show    showCommand    `cmd:"" help:"Show what is known of a model."`
	Export  exportCommand  `cmd:"" help:"Write the trace as a Parquet or JSON-lines file."`

	Color string `enum:"auto,always,never" default:"auto" help:"Colour: auto, always or never."`
}

// examples are the first lines of each command's help.
var examples = map[string]string{
	"":        "presage-train eval requests.csv.gz",
	"eval":    "presage-train eval requests.csv.gz --json",
	"fit":     "presage-train fit --from data/trace --out data/models --promote",
	"promote": "presage-train promote --models data/models v3",
	"list":    "presage-train list --models data/models",
	"show":    "presage-train show --models data/models v3",
	"export":  "presage-train export --from data/trace --to trace.parquet --since 24h",
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, t *terminal.Terminal) int {
	var g grammar
	p := command.Program{
		Name:    "presage-train",
		About:   "Latency models for LLM inference: judged, fitted and kept.",
		Grammar: &g, Color: &g.Color, Examples: examples,
	}
	return p.Run(ctx, args, t)
}
