package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/calibrate"
)

type validateCommand struct {
	Data  string `env:"PRESAGE_DATA" default:"../shared/data" placeholder:"DIR" help:"Folder of the measurements; default PRESAGE_DATA, else ${default}."`
	Quick bool   `help:"Leave out the orders of policies, which take most of the time."`
	JSON  bool   `name:"json" help:"Print one JSON object on the last line."`
}

// Run compares simulation and measurement. Checks outside their limits make it fail.
func (c *validateCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if info, err := os.Stat(c.Data); err != nil || !info.IsDir() {
		return command.Usage(fmt.Errorf("--data %s: no such folder; name the one with the measurements, or set PRESAGE_DATA", c.Data))
	}
	r, err := calibrate.Validate(ctx, c.Data, calibrate.Options{Quick: c.Quick, Progress: func(group string) {
		t.Progress(time.Now(), "checking: "+group)
	}})
	if err != nil {
		return err
	}
	printChecks(t, r)
	printChats(t, r.Chats)
	judged := 0
	for _, k := range r.Checks {
		if k.Limit > 0 {
			judged++
		}
	}
	t.Result("")
	t.Result("%d of %d judged checks within their limits, %d more are shown.", judged-r.Missed(), judged, len(r.Checks)-judged)
	if c.JSON {
		if err := t.JSON(r); err != nil {
			return err
		}
	}
	if n := r.Missed(); n > 0 {
		return fmt.Errorf("validate: %d of %d checks outside their limits", n, judged)
	}
	return nil
}

func printChecks(t *terminal.Terminal, r *calibrate.Report) {
	t.Result("") // ends the progress line
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "check\trows\tfitted on\terror\tlimit\tok")
	for _, c := range r.Checks {
		limit, ok := "-", "shown"
		if c.Limit > 0 {
			limit, ok = share(c.Limit), "yes"
		}
		if !c.OK {
			ok = "NO"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", c.Name, c.Rows, c.Fitted, share(c.Error), limit, ok)
	}
	_ = w.Flush() // an error of Out shows at the next write
}

func printChats(t *terminal.Terminal, chats []calibrate.Chat) {
	if len(chats) == 0 {
		return
	}
	t.Result("")
	t.Result("Chat sessions on 8 A100, mean TTFT in seconds, measured | simulated (mean of 20 session-to-engine maps)")
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rate/s\tsticky\t|\tsimulated\trandom\t|\tsimulated\t")
	for _, c := range chats {
		fmt.Fprintf(w, "%.1f\t%s\t|\t%.2f\t%s\t|\t%.2f\t\n", c.Rate, seconds(c.StickyMeasured), c.Sticky, seconds(c.RandomMeasured), c.Random)
	}
	_ = w.Flush()
}

func share(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

// seconds is a measured time; 0 stands for none.
func seconds(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
