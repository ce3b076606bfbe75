package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/models"
	"github.com/presage-router/presage/models/seed"
	"github.com/presage-router/presage/predictor"
	"github.com/presage-router/presage/training"
	"github.com/presage-router/presage/training/evaluate"
)

type fitCommand struct {
	From     []string      `required:"" placeholder:"DIR|FILE" help:"Logged requests: directories of traces, files exported from them, or measurements with times of arrival; oldest first."`
	More     []string      `arg:"" optional:"" name:"file" help:"More of them."`
	Out      string        `required:"" placeholder:"DIR" help:"Registry that takes the model: models.dir of presage.yaml."`
	Since    instant       `placeholder:"TIME" help:"Leave out what was decided before: a date, a time, or 24h for the last day."`
	Until    instant       `placeholder:"TIME" help:"Leave out what was decided then or later."`
	Continue bool          `help:"Start from the champion instead of from the priors."`
	Refit    time.Duration `default:"60s" placeholder:"D" help:"Least time, of the log's clock, between two fits of the trees of a class; default ${default}."`
	Promote  bool          `help:"Make the model champion if it is better by 2 %, beyond chance, or if there is none."`
	JSON     bool          `name:"json" help:"Print one JSON object on the last line."`
}

// fitted is the JSON of the command.
type fitted struct {
	Model    string `json:"model"`
	Promoted bool   `json:"promoted"`
	*training.Result
}

// Run fits a model, judges it, and puts it into the registry.
func (c *fitCommand) Run(ctx context.Context, t *terminal.Terminal) error {
	records, err := training.OpenRecords(append(c.From, c.More...)...)
	if err != nil {
		return command.Usage(fmt.Errorf("--from %w", err))
	}
	defer func() { _ = records.Close() }() // read only
	records.Since, records.Until = c.Since.Time, c.Until.Time
	registry, err := models.Open(c.Out)
	if err != nil {
		return command.Usage(fmt.Errorf("--out %w", err))
	}
	defer func() { _ = registry.Close() }() // every file in it is synced
	o := training.Options{
		Predictor: predictor.Options{Prior: seed.Prior, RefitAfter: c.Refit},
		Continue:  c.Continue,
		Progress:  func(done, of int) { t.Progress(time.Now(), fmt.Sprintf("fit  %d of %d records", done, of)) },
	}
	if err := champion(registry, &o, t); err != nil {
		return err
	}
	result, err := training.Fit(ctx, records, o)
	if err != nil {
		return err
	}
	out := fitted{Result: result}
	if out.Model, err = keep(registry, result); err != nil {
		return err
	}
	if c.Promote && result.Gate.Pass {
		if err := registry.Promote(out.Model, time.Now()); err != nil {
			return err
		}
		out.Promoted = true
	}
	c.print(t, &out)
	if c.JSON {
		return t.JSON(out)
	}
	return nil
}

// champion finds the model to beat. One of another version is none.
func champion(registry *models.Registry, o *training.Options, t *terminal.Terminal) error {
	name, err := registry.Champion()
	if errors.Is(err, models.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	m, state, err := registry.Load(name)
	if errors.Is(err, models.ErrSchema) {
		t.Note("%v: fitted as if there were no champion", err)
		return nil
	}
	if err == nil {
		o.Champion, o.ChampionName, o.ChampionUntil = state, name, m.Until
	}
	return err
}

// keep writes model and card.
func keep(registry *models.Registry, r *training.Result) (name string, err error) {
	metrics, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("cannot encode the metrics: %w", err)
	}
	m, err := registry.Put(models.Manifest{Data: r.Data, Rows: r.Rows, Since: r.Since, Until: r.Until, Metrics: metrics}, &r.State, time.Now())
	if err != nil {
		return "", err
	}
	return m.Name, registry.Attach(m.Name, "md", r.Card(m.Name))
}

func (c *fitCommand) print(t *terminal.Terminal, f *fitted) {
	t.Result("model %s: %d records learned, the last %d of them judged", f.Model, f.Rows, f.Holdout)
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "TIME\tOF\tREQUESTS\tMAPE\tMEDIAN APE\tP90 HOLDS\tPINBALL\t")
	for _, target := range evaluate.TargetNames {
		row := func(of string, s training.Score) {
			if s.N > 0 {
				fmt.Fprintf(w, "%s\t%s\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%.4f\t\n", target, of, s.N, 100*s.MAPE, 100*s.MedAPE, 100*s.Coverage90, s.Pinball)
			}
		}
		row("new", f.Metrics[target])
		for _, other := range []string{"champion", "prior"} {
			row(other, f.Baselines[other][target])
		}
	}
	_ = w.Flush() // an error of Out shows at the next write
	if len(f.Dropped) > 0 {
		t.Note("not learned: %s", counts(f.Dropped))
	}
	against := "no champion"
	if f.Gate.Champion != "" {
		against = "against " + f.Gate.Champion
	}
	t.Result("%s: %s", against, f.Gate.Why)
	switch {
	case f.Promoted:
		t.Result("%s is champion now", f.Model)
	case c.Promote:
		t.Result("%s is not promoted", f.Model)
	case f.Gate.Pass:
		t.Result("make it champion: presage-train promote --models %s %s", c.Out, f.Model)
	}
}
