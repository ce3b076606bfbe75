// Command presage is the endpoint picker: it answers an Envoy-based gateway over ext_proc with the
// model server that should take each request.
package main

import (
	"context"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
)

func main() {
	command.Main(run) // serve drains at an interrupt before it ends
}

type grammar struct {
	Serve    serveCommand    `cmd:"" help:"Serve a gateway over ext_proc."`
	Check    checkCommand    `cmd:"" help:"Check a configuration; nothing is dialled."`
	Policies policiesCommand `cmd:"" help:"List the policies, with a line each."`
	Explain  explainCommand  `cmd:"" help:"Show why an endpoint was picked."`
	Version  versionCommand  `cmd:"" help:"Print version, revision and Go release."`

	Color string `enum:"auto,always,never" default:"auto" help:"Colour: auto, always or never."`
}

// examples are the first lines of each command's help.
var examples = map[string]string{
	"":         "presage check -c presage.yaml && presage serve -c presage.yaml",
	"serve":    "presage serve -c presage.yaml",
	"check":    "presage check -c presage.yaml",
	"policies": "presage policies",
	"explain":  "presage explain --admin http://127.0.0.1:9090 --last",
	"version":  "presage version",
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, t *terminal.Terminal) int {
	var g grammar
	p := command.Program{
		Name:    "presage",
		About:   "Endpoint picker for LLM inference behind an Envoy-based gateway.",
		Grammar: &g, Color: &g.Color, Examples: examples,
	}
	return p.Run(ctx, args, t)
}
