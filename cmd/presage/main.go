// Command presage is the endpoint picker: it answers an Envoy-based gateway over ext_proc with the
// model server that should take each request.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/presage-router/presage/cmd/internal/terminal"
)

// The exit statuses of every command.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	// An interrupt ends every command but serve, which drains first; a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], terminal.New(os.Stdout, os.Stderr, os.Getenv))
	stop()
	os.Exit(code)
}

type grammar struct {
	Serve    serveCommand    `cmd:"" help:"Serve a gateway over ext_proc."`
	Check    checkCommand    `cmd:"" help:"Check a configuration; nothing is dialled."`
	Policies policiesCommand `cmd:"" help:"List the policies, with a line each."`
	Explain  explainCommand  `cmd:"" help:"Show why an endpoint was picked."`
	Version  versionCommand  `cmd:"" help:"Print version, revision and Go release."`

	Color string `enum:"auto,always,never" default:"auto" help:"Colour: auto, always or never."`
}

// usageError is bad input: a wrong command line, or a file that cannot be used.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, t *terminal.Terminal) int {
	var g grammar
	exited := -1
	k, err := kong.New(&g,
		kong.Name("presage"),
		kong.Description("Endpoint picker for LLM inference behind an Envoy-based gateway."),
		kong.Writers(t.Out, t.Err),
		kong.Exit(func(code int) { exited = code }),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 80}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(t),
	)
	if err != nil {
		fmt.Fprintln(t.Err, "presage:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	c, err := k.Parse(args)
	if exited >= 0 { // help was asked for and printed
		return exited
	}
	if err != nil {
		fmt.Fprintf(t.Err, "presage: %v; see presage --help\n", err)
		return exitUsage
	}
	t.Choose(g.Color)
	return report(ctx, t, c.Run())
}

// report prints an error and returns the exit status it stands for.
func report(ctx context.Context, t *terminal.Terminal, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintln(t.Err, err)
		return exitUsage
	}
	fmt.Fprintln(t.Err, err)
	return exitFailed
}

// example is the first line of a command's help.
func example(command string) string {
	switch command {
	case "serve":
		return "presage serve -c presage.yaml"
	case "check":
		return "presage check -c presage.yaml"
	case "policies":
		return "presage policies"
	case "explain":
		return "presage explain --admin http://127.0.0.1:9090 --last"
	case "version":
		return "presage version"
	}
	return "presage check -c presage.yaml && presage serve -c presage.yaml"
}

func help(o kong.HelpOptions, c *kong.Context) error {
	command := ""
	if n := c.Selected(); n != nil {
		command = n.Name
	}
	fmt.Fprintf(c.Stdout, "Example: %s\n\n", example(command))
	return kong.DefaultHelpPrinter(o, c)
}
