package main

import (
	"fmt"

	"github.com/presage-router/presage/internal/telemetry"
)

type versionCommand struct{}

func (versionCommand) Run(t *terminal) error {
	_, err := fmt.Fprintln(t.out, "presage", telemetry.ReadBuild())
	return err
}
