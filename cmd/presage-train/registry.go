package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/presage-router/presage/cmd/internal/command"
	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/models"
	"github.com/presage-router/presage/training"
)

// registry is the flag of commands on a registry, which must be there.
type registry struct {
	Models string `required:"" placeholder:"DIR" help:"Registry of models: models.dir of presage.yaml."`
}

func (r *registry) open() (*models.Registry, error) {
	if info, err := os.Stat(r.Models); err != nil || !info.IsDir() {
		return nil, command.Usage(fmt.Errorf("--models %s: no such directory; name models.dir of presage.yaml", r.Models))
	}
	reg, err := models.Open(r.Models)
	if err != nil {
		return nil, command.Usage(fmt.Errorf("--models %w", err))
	}
	return reg, nil
}

type listCommand struct {
	registry `embed:""`

	JSON bool `name:"json" help:"Print one JSON object."`
}

// listed is one model in the JSON of list.
type listed struct {
	Name     string                    `json:"name"`
	Champion bool                      `json:"champion"`
	Created  time.Time                 `json:"created,omitzero"`
	Rows     int                       `json:"rows"`
	Classes  int                       `json:"classes"`
	Metrics  map[string]training.Score `json:"metrics,omitempty"`
	Error    string                    `json:"error,omitempty"` // why it cannot be used
}

// Run lists the models, newest first.
func (c *listCommand) Run(t *terminal.Terminal) error {
	reg, err := c.open()
	if err != nil {
		return err
	}
	defer func() { _ = reg.Close() }() // nothing was written
	entries, err := reg.List()
	if err != nil {
		return err
	}
	list := make([]listed, len(entries))
	for i, e := range entries {
		list[i] = listed{Name: e.Name, Champion: e.Champion, Created: e.Created, Rows: e.Rows, Classes: e.Classes}
		var r training.Result
		if json.Unmarshal(e.Metrics, &r) == nil { // others may keep other metrics
			list[i].Metrics = r.Metrics
		}
		if e.Err != nil {
			list[i].Error = e.Err.Error()
		}
	}
	if c.JSON {
		return t.JSON(map[string][]listed{"models": list})
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  MODEL\tCREATED\tRECORDS\tTTFT MAPE\tITL MAPE")
	for _, m := range list {
		mark := " "
		if m.Champion {
			mark = "*"
		}
		if m.Error != "" {
			fmt.Fprintf(w, "%s %s\tcannot be used\t-\t-\t-\n", mark, m.Name)
			continue
		}
		fmt.Fprintf(w, "%s %s\t%s\t%d\t%s\t%s\n", mark, m.Name, m.Created.UTC().Format("2006-01-02 15:04"), m.Rows, mape(m.Metrics["ttft"]), mape(m.Metrics["itl"]))
	}
	_ = w.Flush() // an error of Out shows at the next write
	for _, m := range list {
		if m.Error != "" {
			t.Note("%s", m.Error)
		}
	}
	return nil
}

func mape(s training.Score) string {
	if s.N == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*s.MAPE)
}

type showCommand struct {
	registry `embed:""`

	Model string `arg:"" optional:"" help:"Name of the model; default: the champion."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

// Run checks a model and shows what is known of it.
func (c *showCommand) Run(t *terminal.Terminal) error {
	reg, err := c.open()
	if err != nil {
		return err
	}
	defer func() { _ = reg.Close() }() // nothing was written
	name := c.Model
	if name == "" {
		if name, err = reg.Champion(); err != nil {
			return err
		}
	}
	m, state, err := reg.Load(name)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.JSON(m)
	}
	var r training.Result
	if json.Unmarshal(m.Metrics, &r) == nil && r.Rows > 0 {
		t.Result("%s", r.Card(name))
	} else {
		t.Result("# Model %s\n\nCreated %s, without an offline judgement.\n", name, m.Created.UTC().Format("2006-01-02 15:04 MST"))
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "MODEL\tGPU\tTP\tENGINE\tTTFT LABELS\tITL LABELS\t")
	for i := range state.Classes {
		k := &state.Classes[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\t\n", or(k.Model), or(k.GPU), k.TP, or(k.Engine), k.Targets[0].Labels, k.Targets[1].Labels)
	}
	_ = w.Flush() // an error of Out shows at the next write
	return nil
}

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type promoteCommand struct {
	registry `embed:""`

	Model string `arg:"" optional:"" help:"Name of the model that is to be champion."`
	Back  bool   `help:"Go back to the champion before this one."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

// Run checks a model and makes it champion.
func (c *promoteCommand) Run(t *terminal.Terminal) error {
	if (c.Model == "") == !c.Back {
		return command.Usage(errors.New("promote: name a model, or --back for the champion before this one"))
	}
	reg, err := c.open()
	if err != nil {
		return err
	}
	defer func() { _ = reg.Close() }() // every file in it is synced
	name := c.Model
	if c.Back {
		name, err = reg.Rollback(time.Now())
	} else {
		err = reg.Promote(name, time.Now())
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return t.JSON(map[string]string{"champion": name})
	}
	t.Result("%s is champion now", name)
	return nil
}
