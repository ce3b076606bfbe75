package main

import (
	"fmt"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/config"
	"github.com/presage-router/presage/cmd/internal/serve"
	"github.com/presage-router/presage/cmd/internal/terminal"
)

type checkCommand struct {
	Config string `short:"c" required:"" placeholder:"FILE" help:"Configuration file."`
	JSON   bool   `name:"json" help:"Print one JSON object; problems go to stderr all the same."`
}

// Run reads the configuration and the files that it names, and prints every problem.
func (c *checkCommand) Run(t *terminal.Terminal) error {
	cfg, warnings, err := config.Load(c.Config, serve.Policies().Names())
	for _, w := range warnings {
		fmt.Fprintln(t.Err, w)
	}
	if err == nil {
		err = serve.CheckFiles(cfg)
	}
	if c.JSON {
		if jerr := t.JSON(map[string]bool{"ok": err == nil}); jerr != nil {
			return jerr
		}
	}
	if err != nil {
		return command.Usage(err)
	}
	if !c.JSON {
		fmt.Fprintf(t.Out, "%s is valid\n", c.Config)
	}
	return nil
}
