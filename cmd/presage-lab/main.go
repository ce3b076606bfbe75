// Command presage-lab shows and measures routing policies without a cluster: a demo, emulated
// engines, comparisons on simulated ones.
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
	// The first interrupt ends the command in order, a second one at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], terminal.New(os.Stdout, os.Stderr, os.Getenv))
	stop()
	os.Exit(code)
}

// grammar is the command line. Each command is in a file of its own.
type grammar struct {
	Demo    demoCommand    `cmd:"" help:"Show policies at work: emulated engines, the real service, a gateway, load."`
	Emulate emulateCommand `cmd:"" help:"Serve one emulated engine."`
	Bench   benchCommand   `cmd:"" help:"Measure what the service costs."`

	Validate  validateCommand  `cmd:"" help:"Compare simulated engines with measurements of real ones."`
	Calibrate calibrateCommand `cmd:"" help:"Fit a simulated engine to a measurement file."`

	Color string `enum:"auto,always,never" default:"auto" help:"Colour: auto, always or never."`
}

// examples are the first lines of each command's help.
var examples = map[string]string{
	"":              "presage-lab demo",
	"demo":          "presage-lab demo --duration 20s",
	"bench":         "presage-lab bench extproc --body 2048",
	"bench decide":  "presage-lab bench decide --endpoints 100",
	"bench extproc": "presage-lab bench extproc --endpoints 8 --body 2048",
	"bench idle":    "presage-lab bench idle --endpoints 8",
	"bench soak":    "presage-lab bench soak --envoy PATH --clients 1000",
	"bench sim":     "presage-lab bench sim --step token",
	"calibrate":     "presage-lab calibrate measured.csv --run NAME",
	"validate":      "presage-lab validate --data ../shared/data",
	"emulate":       "presage-lab emulate --gpu H100 --model llama-3.1-8b --port 8101",
}

// usageError is bad input: a wrong command line, or a file that cannot be used.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, t *terminal.Terminal) int {
	var g grammar
	exited := -1
	k, err := kong.New(&g,
		kong.Name("presage-lab"),
		kong.Description("Routing policies for LLM inference, shown and measured without a cluster."),
		kong.Writers(t.Out, t.Err),
		kong.Exit(func(code int) { exited = code }),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 80}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(t),
	)
	if err != nil {
		fmt.Fprintln(t.Err, "presage-lab:", err)
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
		fmt.Fprintf(t.Err, "presage-lab: %v; see presage-lab --help\n", err)
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
		t.Note("%v", err)
		return exitUsage
	}
	t.Note("%v", err)
	return exitFailed
}

func help(o kong.HelpOptions, c *kong.Context) error {
	command := ""
	if n := c.Selected(); n != nil {
		command = n.Path()
	}
	fmt.Fprintf(c.Stdout, "Example: %s\n\n", examples[command])
	return kong.DefaultHelpPrinter(o, c)
}
