package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/lab/ab"
	"github.com/presage-router/presage/lab/report"
)

type abCommand struct {
	Logs    []string       `arg:"" name:"log" help:"Logs of finished requests, one of each replica: GET /trace of the admin address, or presage-train export."`
	Control string         `placeholder:"ARM" help:"Arm that the others are held against; default: blocks held back, else one that does not predict."`
	Unit    string         `placeholder:"UNIT" help:"What was assigned: block, session or request; default: as the log shows."`
	Block   time.Duration  `placeholder:"5m" help:"Length of blocks, or of the cells of time of a split; default: as the log shows."`
	Washout *time.Duration `placeholder:"60s" help:"Left out at the start of a block; default: 60s, or longer if the caches take longer to turn over."`
	Report  string         `placeholder:"FILE.html" help:"Also write the report as one HTML file."`
	JSON    bool           `name:"json" help:"Print one JSON object on the last line."`
}

// Run reads the logs and prints what they show.
func (c *abCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Report != "" && !strings.HasSuffix(c.Report, ".html") {
		return command.Usage(fmt.Errorf("--report %s: no .html file; write --report %s.html", c.Report, c.Report))
	}
	opts := ab.Options{Control: c.Control, Unit: c.Unit, Block: c.Block, Washout: c.Washout}
	r, err := ab.Read(ctx, c.Logs, opts, func(pass, rows int) {
		t.Progress(time.Now(), fmt.Sprintf("ab  reading %d of 2, %d rows", pass, rows))
	})
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return command.Usage(err)
	}
	printAB(t, r)
	if c.Report != "" {
		if err := c.write(r); err != nil {
			return err
		}
		t.Result("")
		t.Result("report  %s", c.Report)
	}
	if c.JSON {
		return t.JSON(r)
	}
	return nil
}

// write makes the HTML report, of the first arm against the control.
func (c *abCommand) write(r *ab.Result) error {
	m := report.Method{
		Command: c.again(), Version: telemetry.ReadBuild().Version,
		TTFTOff: report.Unknown(), ITLOff: report.Unknown(), RunHours: report.Unknown(),
	}
	var page bytes.Buffer
	if err := report.Write(&page, r.Comparison(0, m)); err != nil {
		return fmt.Errorf("--report %s: %w", c.Report, err)
	}
	if err := os.WriteFile(c.Report, page.Bytes(), 0o640); err != nil {
		return fmt.Errorf("--report %s: cannot be written: %w", c.Report, err)
	}
	return nil
}

// again is the command line that gives the same report.
func (c *abCommand) again() string {
	words := append([]string{"presage-lab", "ab"}, c.Logs...)
	if c.Control != "" {
		words = append(words, "--control", c.Control)
	}
	if c.Unit != "" {
		words = append(words, "--unit", c.Unit)
	}
	if c.Block > 0 {
		words = append(words, "--block", c.Block.String())
	}
	if c.Washout != nil {
		words = append(words, "--washout", c.Washout.String())
	}
	return strings.Join(words, " ")
}
