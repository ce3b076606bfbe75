package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/datasets/observations"
	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/training"
)

type exportCommand struct {
	From  string  `required:"" placeholder:"DIR" help:"Directory of the trace (trace.dir of presage.yaml), or a file that was exported from one."`
	To    string  `required:"" placeholder:"FILE" help:"File to write: its extension, .parquet or .jsonl, says in which form."`
	Since instant `placeholder:"TIME" help:"Leave out what was decided before: a date, a time, or 24h for the last day."`
	Until instant `placeholder:"TIME" help:"Leave out what was decided then or later."`
	JSON  bool    `name:"json" help:"Print one JSON object on the last line."`
}

// exported is the JSON of the command.
type exported struct {
	File    string         `json:"file"`
	Rows    int            `json:"rows"`
	Skipped map[string]int `json:"skipped,omitempty"` // rows that could not be read, by reason
}

// Run writes the log as a file, which appears when it is whole.
func (c *exportCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if _, err := observations.FormatOf(c.To); err != nil {
		return command.Usage(fmt.Errorf("--to %w", err))
	}
	records, err := training.OpenRecords(c.From)
	if err != nil {
		return command.Usage(fmt.Errorf("--from %w", err))
	}
	defer func() { _ = records.Close() }() // read only
	records.Since, records.Until = c.Since.Time, c.Until.Time
	w, err := observations.Create(c.To)
	if err != nil {
		return command.Usage(fmt.Errorf("--to %w", err))
	}
	defer w.Abort()
	err = records.Scan(func(o *features.Observation) error {
		if w.Rows()%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			t.Progress(time.Now(), fmt.Sprintf("export  %d rows", w.Rows()))
		}
		return w.Write(o)
	})
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		return err
	}
	if len(records.Skipped) > 0 {
		t.Note("%s: rows left out: %s", c.From, counts(records.Skipped))
	}
	if c.JSON {
		return t.JSON(exported{File: c.To, Rows: w.Rows(), Skipped: records.Skipped})
	}
	t.Result("%s: %d rows", c.To, w.Rows())
	return nil
}

// counts lists numbers by name.
func counts[N int | uint64](m map[string]N) string {
	list := make([]string, 0, len(m))
	for name, n := range m {
		list = append(list, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
