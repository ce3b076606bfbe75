// Command presage-lab shows and measures routing policies without a cluster: a demo, emulated
// engines, comparisons on simulated ones.
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
	Demo    demoCommand    `cmd:"" help:"Show policies at work: emulated engines, the real service, a gateway, load."`
	Emulate emulateCommand `cmd:"" help:"Serve one emulated engine."`
	Load    loadCommand    `cmd:"" help:"Send requests to a gateway or an engine and time the answers."`
	Bench   benchCommand   `cmd:"" help:"Measure what the service costs."`

	Foresee   foreseeCommand   `cmd:"" help:"Compare forecasts with what engines would really have done, on every endpoint."`
	Scenarios scenariosCommand `cmd:"" help:"List the scenarios."`
	Compare   compareCommand   `cmd:"" help:"Compare policies on simulated engines, with the same arrivals."`
	AB        abCommand        `cmd:"" name:"ab" help:"Say what a live experiment shows, from exported logs."`
	Results   resultsCommand   `cmd:"" help:"Hold one policy against the best of the others, scenario by scenario."`
	Validate  validateCommand  `cmd:"" help:"Compare simulated engines with measurements of real ones."`
	Calibrate calibrateCommand `cmd:"" help:"Fit a simulated engine to a measurement file."`

	Color string `enum:"auto,always,never" default:"auto" help:"Colour: auto, always or never."`
}

// examples are the first lines of each command's help.
var examples = map[string]string{
	"":              "presage-lab demo",
	"demo":          "presage-lab demo --duration 20s",
	"load":          "presage-lab load --target http://127.0.0.1:10000 --model llama-3.1-8b",
	"bench":         "presage-lab bench extproc --body 2048",
	"bench decide":  "presage-lab bench decide --endpoints 100",
	"bench extproc": "presage-lab bench extproc --endpoints 8 --body 2048",
	"bench idle":    "presage-lab bench idle --endpoints 8",
	"bench soak":    "presage-lab bench soak --envoy PATH --clients 1000",
	"bench sim":     "presage-lab bench sim --step token",
	"scenarios":     "presage-lab scenarios",
	"ab":            "presage-lab ab replica-1.jsonl replica-2.jsonl",
	"compare":       "presage-lab compare --scenario mixed-gpus --sweep",
	"foresee":       "presage-lab foresee --scenario upgrade --ablate",
	"results":       "presage-lab results --scenarios herd,mixed-gpus --seeds 8",
	"calibrate":     "presage-lab calibrate measured.csv --run NAME",
	"validate":      "presage-lab validate --data ../shared/data",
	"emulate":       "presage-lab emulate --gpu H100 --model llama-3.1-8b --port 8101",
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, t *terminal.Terminal) int {
	var g grammar
	p := command.Program{
		Name:    "presage-lab",
		About:   "Routing policies for LLM inference, shown and measured without a cluster.",
		Grammar: &g, Color: &g.Color, Examples: examples,
	}
	return p.Run(ctx, args, t)
}
