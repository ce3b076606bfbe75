package main

import (
	"fmt"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/telemetry"
)

type versionCommand struct{}

func (versionCommand) Run(t *terminal.Terminal) error {
	_, err := fmt.Fprintln(t.Out, "presage", telemetry.ReadBuild())
	return err
}
