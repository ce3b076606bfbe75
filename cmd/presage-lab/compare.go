package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/engine"
	"github.com/presage-router/presage/lab/workload"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/router"
)

type compareCommand struct {
	Scenario  []string  `required:"" placeholder:"NAME|FILE" help:"Scenarios: known names, or files."`
	Policies  string    `default:"predictive,adaptive,weighted,least-request,round-robin" placeholder:"A,B" help:"The first is held against the others. Knobs: predictive:stall=0.3,slo=0."`
	Seeds     int       `default:"8" help:"Number of seeds; 5 or more for a verdict."`
	Seed      uint64    `default:"1" help:"First seed; the others follow it."`
	Load      []float64 `placeholder:"X" help:"Multiples of the scenario's rate; default 1."`
	Sweep     bool      `help:"All its loads, and what each policy sustains."`
	Columns   []string  `placeholder:"NAME" help:"Columns of the tables, named as in --json."`
	Reference string    `placeholder:"NAME" help:"Policy that changed decisions are counted against."`
	Control   bool      `negatable:"" default:"true" help:"Play always-busiest, which has to lose."`
	Trace     string    `placeholder:"FILE" help:"Trace to replay, where a scenario needs one."`
	Data      string    `env:"PRESAGE_DATA" default:"../shared/data" placeholder:"DIR" help:"Where such traces are looked for."`
	Workers   int       `default:"0" help:"Runs at a time; 0: one per CPU."`
	JSON      bool      `name:"json" help:"Print one JSON object on the last line."`

	Ablation  ablation   `embed:""`
	Upper     references `embed:""`
	reporting `embed:""`
}

// controlPolicy has to lose.
const controlPolicy = "always-busiest"

// errVoid ends a comparison whose control did not lose.
var errVoid = errors.New("void: the control arm did not lose; do not read further")

// Run plays the scenarios one after the other and prints what came out. Interrupted, it prints what
// was finished.
func (c *compareCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Ablation.Ablate {
		if c.Report != "" {
			return command.Usage(errors.New("--report: not with --ablate, which prints tables; leave one out"))
		}
		return c.Ablation.run(ctx, c, t)
	}
	if c.Upper.References != "" && c.Report == "" {
		return c.Upper.run(ctx, c, t)
	}
	matches, columns, err := c.matches()
	if err != nil {
		return command.Usage(err)
	}
	studies, err := c.upper()
	if err != nil {
		return command.Usage(err)
	}
	began := time.Now()
	var outcomes []*compare.Outcome
	var took []time.Duration
	var failed error
	for i, m := range matches {
		start := time.Now()
		m.Progress = func(done, planned int) { t.Progress(time.Now(), c.progress(t, began, i, len(matches), done, planned)) }
		o, err := m.Run(ctx)
		outcomes, took = append(outcomes, o), append(took, time.Since(start))
		if failed = err; err != nil {
			break
		}
	}
	if len(outcomes) > 1 {
		compare.Adjust(outcomes)
	}
	void := false
	for i, o := range outcomes {
		if err := printOutcome(t, o, columns); err != nil {
			return err
		}
		void = void || o.Void != ""
		if err := c.reportMatch(ctx, t, studies, matches[i], o, took[i]); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := t.JSON(together(outcomes)); err != nil {
			return err
		}
	}
	switch {
	case failed != nil:
		return failed
	case void:
		return errVoid
	}
	return nil
}

// together is what --json prints: the outcome of one scenario, or a list of several.
func together(outcomes []*compare.Outcome) any {
	if len(outcomes) == 1 {
		return outcomes[0]
	}
	return map[string]any{"scenarios": outcomes}
}

// matches are the scenarios to play, and the columns to show; an error is about the command line.
func (c *compareCommand) matches() ([]*compare.Match, []compare.Measure, error) {
	for _, err := range []error{within("seeds", c.Seeds, 1, 10_000), within("workers", c.Workers, 0, 1024), c.check()} {
		if err != nil {
			return nil, nil, err
		}
	}
	columns, err := columnsOf(c.Columns)
	if err != nil {
		return nil, nil, err
	}
	registry := labPolicies()
	policies := policyList(c.Policies)
	for i, p := range policies {
		if _, err := registry.New(p, router.Params{}); err != nil {
			return nil, nil, fmt.Errorf("--policies: %w", err)
		}
		if slices.Contains(policies[:i], p) {
			return nil, nil, fmt.Errorf("--policies: %s is there twice; name it once", p)
		}
	}
	if c.Reference != "" && !slices.Contains(policies, c.Reference) {
		return nil, nil, fmt.Errorf("--reference: %q is not among the policies; want one of %s", c.Reference, strings.Join(policies, ", "))
	}
	table, err := engine.Builtin()
	if err != nil {
		return nil, nil, err
	}
	var matches []*compare.Match
	for _, name := range c.Scenario {
		s, err := workload.Open(name)
		if err != nil {
			return nil, nil, err
		}
		trace, err := c.trace(s)
		if err != nil {
			return nil, nil, err
		}
		loads, err := c.loads(s)
		if err != nil {
			return nil, nil, err
		}
		m := &compare.Match{
			Arena: arena(s, table, trace, registry), Policies: policies, Loads: loads, Seeds: seedsFrom(c.Seed, c.Seeds),
			Knees: c.Sweep, Reference: c.Reference, Workers: c.Workers,
		}
		if m.Workers == 0 {
			m.Workers = runtime.NumCPU()
		}
		if c.Control {
			m.Control = controlPolicy
		}
		matches = append(matches, m)
	}
	return matches, columns, nil
}

// loads are those asked for, rising.
func (c *compareCommand) loads(s *workload.Scenario) ([]float64, error) {
	loads := slices.Clone(c.Load)
	if c.Sweep {
		loads = append(loads, s.Loads...)
	}
	if len(loads) == 0 {
		loads = []float64{1}
	}
	for _, l := range loads {
		if !(l > 0 && l <= 100) {
			return nil, fmt.Errorf("--load: %v is not above 0 and at most 100", l)
		}
	}
	slices.Sort(loads)
	return slices.Compact(loads), nil
}

// trace is the file that a scenario replays; empty where it replays none.
func (c *compareCommand) trace(s *workload.Scenario) (string, error) {
	if !s.NeedsTrace() || c.Trace != "" {
		return c.Trace, nil
	}
	if file, there := traceIn(c.Data, s.Name); there {
		return file, nil
	}
	return "", fmt.Errorf("--trace: scenario %s replays a trace; name its file", s.Name)
}

// progress is the line that is shown meanwhile.
func (c *compareCommand) progress(t *terminal.Terminal, began time.Time, i, n, done, planned int) string {
	share := float64(done) / float64(max(planned, 1))
	all := (float64(i) + share) / float64(n)
	line := fmt.Sprintf("compare  %3.0f %% %s  %d of %d runs", 100*all, t.Bar(all, 12), done, planned)
	if n > 1 {
		line += fmt.Sprintf(" of scenario %d of %d", i+1, n)
	}
	if all > 0 {
		left := time.Duration(float64(time.Since(began)) * (1 - all) / all)
		line += "  eta " + left.Round(time.Second).String()
	}
	return line
}

// policyList splits a list of policies at its commas, except those between knobs: a part that sets
// something, but names no policy, belongs to the one before.
func policyList(text string) []string {
	var list []string
	for _, part := range strings.Split(text, ",") {
		if n := len(list); n > 0 && strings.Contains(part, "=") && !strings.Contains(part, ":") {
			list[n-1] += "," + part
			continue
		}
		list = append(list, part)
	}
	return list
}

// arena is where commands compare policies. Trees are left out: they do not enter the ranking, and
// fitting them takes most of the time of a run.
func arena(s *workload.Scenario, table engine.Table, trace string, registry router.Registry) *compare.Arena {
	return &compare.Arena{
		Scenario: s, Table: table, Trace: trace, Policies: registry,
		Learner: predictor.Options{Prior: seed.Prior, Without: predictor.Without{Trees: true}},
	}
}
