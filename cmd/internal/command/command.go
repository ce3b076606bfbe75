// Package command runs the command lines of the binaries: one grammar each, the same help, errors
// and exit statuses.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/presage-router/presage/cmd/internal/terminal"
)

// The exit statuses of every command that did not end well.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

// usage is bad input.
type usage struct{ error }

func (e usage) Unwrap() error { return e.error }

// Usage marks an error as bad input: a wrong command line, or a file that cannot be used.
func Usage(err error) error { return usage{err} }

// Program is one binary's command line.
type Program struct {
	Name     string
	About    string            // one sentence
	Grammar  any               // pointer to the struct that kong fills
	Color    *string           // of the grammar: auto, always or never
	Examples map[string]string // first line of each command's help, by its path; "" for the program's
}

// Main runs a program as the process and ends it. An interrupt ends the context, a second one the
// process.
func Main(run func(context.Context, []string, *terminal.Terminal) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], terminal.New(os.Stdout, os.Stderr, os.Getenv))
	stop()
	os.Exit(code)
}

// Run executes one command line and returns the exit status.
func (p *Program) Run(ctx context.Context, args []string, t *terminal.Terminal) int {
	exited := -1
	k, err := kong.New(p.Grammar,
		kong.Name(p.Name),
		kong.Description(p.About),
		kong.Writers(t.Out, t.Err),
		kong.Exit(func(code int) { exited = code }),
		kong.Help(p.help),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 80}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(t),
	)
	if err != nil {
		fmt.Fprintf(t.Err, "%s: %v\n", p.Name, err)
		return ExitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	c, err := k.Parse(args)
	if exited >= 0 { // help was asked for and printed
		return exited
	}
	if err != nil {
		fmt.Fprintf(t.Err, "%s: %v; see %s --help\n", p.Name, err, p.Name)
		return ExitUsage
	}
	t.Choose(*p.Color)
	return report(ctx, t, c.Run())
}

// report prints an error and returns the exit status it stands for.
func report(ctx context.Context, t *terminal.Terminal, err error) int {
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	t.Note("%v", err)
	if errors.As(err, new(usage)) {
		return ExitUsage
	}
	return ExitFailed
}

func (p *Program) help(o kong.HelpOptions, c *kong.Context) error {
	command := ""
	if n := c.Selected(); n != nil {
		command = n.Path()
	}
	fmt.Fprintf(c.Stdout, "Example: %s\n\n", p.Examples[command])
	return kong.DefaultHelpPrinter(o, c)
}
