package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/workload"
)

type scenariosCommand struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Run lists the scenarios that compare and results can play.
func (c *scenariosCommand) Run(t *terminal.Terminal) error {
	type scenario struct {
		Name  string    `json:"name"`
		About string    `json:"about"`
		Loads []float64 `json:"loads"`
		Trace bool      `json:"needs_trace"`
	}
	var list []scenario
	for _, name := range workload.Names() {
		s, err := workload.Builtin(name)
		if err != nil {
			return err
		}
		list = append(list, scenario{Name: name, About: s.About, Loads: s.Loads, Trace: s.NeedsTrace()})
	}
	if c.JSON {
		return t.JSON(map[string][]scenario{"scenarios": list})
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		about := s.About
		if s.Trace {
			about += " (needs its trace)"
		}
		fmt.Fprintf(w, "%s\t%s\n", s.Name, about)
	}
	return w.Flush()
}
