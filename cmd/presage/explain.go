package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/router"
	"github.com/presage-router/presage/router/admin"
)

type explainCommand struct {
	ID string `arg:"" optional:"" help:"Decision id, as in the response header x-presage-decision."`

	Last  bool `help:"The newest decision." xor:"which"`
	Worst int  `placeholder:"N" help:"The N slowest decisions that are kept." xor:"which"`

	Admin string `default:"http://127.0.0.1:9090" placeholder:"URL" help:"Admin address of the service (${default})."`
	Token string `env:"PRESAGE_ADMIN_TOKEN" help:"Value of admin.token, where one is set."`
	All   bool   `help:"Show every endpoint, not the best eight."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

// Run asks the service and prints what it kept of the decisions.
func (c *explainCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	client := &admin.Client{URL: c.Admin, Token: c.Token}
	var found []*admin.Explained
	var err error
	switch {
	case c.Worst < 0:
		return command.Usage(fmt.Errorf("--worst %d: not positive; write how many to show", c.Worst))
	case c.ID != "" && (c.Last || c.Worst > 0):
		return command.Usage(errors.New("explain: an id and --last or --worst; give one of them"))
	case c.ID != "":
		if _, ok := router.ParseID(c.ID); !ok {
			return command.Usage(fmt.Errorf("%s: no decision id; they look like d-1x7k2m-8f", telemetry.Clean(c.ID)))
		}
		found, err = one(client.Explain(ctx, c.ID))
	case c.Last:
		found, err = one(client.Last(ctx))
	case c.Worst > 0:
		found, err = client.Worst(ctx, c.Worst)
	default:
		return command.Usage(errors.New("explain: which decision?; give an id, --last or --worst N"))
	}
	switch {
	case err != nil:
		return err
	case c.JSON && c.Worst > 0:
		return t.JSON(map[string]any{"decisions": found})
	case c.JSON:
		return t.JSON(found[0])
	}
	for i, x := range found {
		if i > 0 {
			fmt.Fprintln(t.Out)
		}
		if err := c.print(t, x); err != nil {
			return err
		}
	}
	return nil
}

func one(x *admin.Explained, err error) ([]*admin.Explained, error) {
	return []*admin.Explained{x}, err
}

// print shows one decision, its first line in bold.
func (c *explainCommand) print(t *terminal.Terminal, x *admin.Explained) error {
	var b bytes.Buffer
	if err := x.Text(&b, admin.TextOptions{All: c.All, ASCII: !t.UTF8}); err != nil {
		return err
	}
	first, rest, _ := strings.Cut(b.String(), "\n")
	_, err := fmt.Fprintf(t.Out, "%s\n%s", t.Paint(terminal.Bold, first), rest)
	return err
}
