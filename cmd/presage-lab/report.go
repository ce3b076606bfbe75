package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/internal/telemetry"
	"github.com/presage-router/presage/lab/cluster"
	"github.com/presage-router/presage/lab/compare"
	"github.com/presage-router/presage/lab/oracle"
	"github.com/presage-router/presage/lab/report"
	"github.com/presage-router/presage/lab/workload"
)

// reporting is the part of a command that writes a report.
type reporting struct {
	Report string `placeholder:"FILE" help:"Write a report there, one HTML file a scenario."`
}

// check looks whether the file can be written, before hours are spent on what goes into it.
func (r *reporting) check() error {
	if r.Report == "" {
		return nil
	}
	dir := filepath.Dir(r.Report)
	if s, err := os.Stat(dir); err != nil || !s.IsDir() {
		return fmt.Errorf("--report: %s: no such folder; make it first", dir)
	}
	if s, err := os.Stat(r.Report); err == nil && s.IsDir() {
		return fmt.Errorf("--report: %s: is a folder; name a file in it", r.Report)
	}
	return nil
}

// file is where the report of one scenario goes.
func (r *reporting) file(scenario string, several bool) string {
	if !several {
		return r.Report
	}
	ext := filepath.Ext(r.Report)
	return strings.TrimSuffix(r.Report, ext) + "-" + filepath.Base(scenario) + ext
}

func (r *reporting) write(t *terminal.Terminal, file string, c *report.Comparison) error {
	var b bytes.Buffer
	if err := report.Write(&b, c); err != nil {
		return err
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil { //nolint:gosec // a report is for everybody
		return err
	}
	t.Note("report     %s", file)
	return nil
}

// reportMatch writes the report of one scenario, after the runs that only reports have: one or two
// that are watched from inside, and those of references.
func (c *compareCommand) reportMatch(ctx context.Context, t *terminal.Terminal, studies []*oracle.Study, m *compare.Match, o *compare.Outcome, took time.Duration) error {
	if c.Report == "" {
		return nil
	}
	out := comparisonOf(m, o)
	if o.Seeds > 0 {
		out.Method.RunHours = report.Value(took.Hours() / float64(o.Seeds))
	}
	err := watch(ctx, t, m, o, out)
	if err == nil {
		err = capture(ctx, t, studies, m, o, out)
	}
	// Whatever became of these runs, what was compared is worth its page.
	return errors.Join(err, c.write(t, c.file(o.Scenario, len(c.Scenario) > 1), out))
}

// watch makes the runs that are looked into: of the first policy, and of adaptive where it plays. An
// interrupted comparison has none.
func watch(ctx context.Context, t *terminal.Terminal, m *compare.Match, o *compare.Outcome, out *report.Comparison) error {
	if o.Partial || o.Seeds == 0 {
		return nil
	}
	first := o.Order[0]
	for _, policy := range o.Order {
		if policy != first && policy != "adaptive" || ctx.Err() != nil {
			continue
		}
		t.Progress(time.Now(), "report: watching a run of "+policy)
		p := compare.Probe{Every: 8}
		if _, err := m.Arena.Watch(policy, o.Load, o.SeedList[0], &p); err != nil {
			return err
		}
		out.Timelines = append(out.Timelines, timeline(policy, m.Arena.Scenario, o, &p))
		if policy == first {
			out.Reliability = reliability(policy, o, &p)
		}
		if p.Picked > 0 {
			out.Method.Notes = append(out.Method.Notes, fmt.Sprintf("In the run that was watched, %s changed %.1f\u202f%% of the winners that static weights would have made.", policy, 100*float64(p.Changed)/float64(p.Picked)))
		}
	}
	return nil
}

func reliability(policy string, o *compare.Outcome, p *compare.Probe) *report.Reliability {
	r := &report.Reliability{Policy: policy, Load: report.Value(o.Load), Seed: o.SeedList[0], Lived: report.Unknown()}
	for _, h := range []struct {
		random bool
		held   *compare.Held
	}{{true, &p.Random}, {false, &p.Chosen}} {
		if h.held.N == 0 {
			continue
		}
		k := report.Calibration{Target: "TTFT", Random: h.random, N: h.held.N}
		for i, q := range compare.ForetoldQuantiles {
			k.Quantiles = append(k.Quantiles, report.Value(q))
			k.Observed = append(k.Observed, report.Value(float64(h.held.Under[i])/float64(h.held.N)))
		}
		r.Curves = append(r.Curves, k)
	}
	if p.Lived.N > 0 {
		r.Lived = report.Value(float64(p.Lived.Under[1]) / float64(p.Lived.N))
	}
	return r
}

func timeline(policy string, s *workload.Scenario, o *compare.Outcome, p *compare.Probe) report.Timeline {
	t := report.Timeline{Policy: policy, Load: report.Value(o.Load), Seed: o.SeedList[0]}
	for _, at := range p.At {
		t.Times = append(t.Times, report.Value(at.Seconds()))
	}
	for i, name := range p.Endpoints {
		t.Engines = append(t.Engines, report.Series{Name: name, Values: values(p.Requests[i], 1)})
	}
	for i, name := range p.Scorers {
		t.Weights = append(t.Weights, report.Series{Name: name, Values: values(p.Weights[i], 1)})
	}
	what := map[cluster.EventKind]string{
		cluster.Slow: "slow", cluster.Stall: "stall", cluster.Kill: "dies", cluster.Revive: "returns", cluster.Upgrade: "upgrade", cluster.Fail: "fails", cluster.Blind: "blind",
	}
	for i := range s.Events {
		t.Marks = append(t.Marks, report.Mark{At: report.Value(s.Events[i].At.Seconds()), Text: what[s.Events[i].Kind]})
	}
	return t
}

func values(v []float64, scale float64) []report.Value {
	out := make([]report.Value, len(v))
	for i, x := range v {
		out[i] = report.Value(scale * x)
	}
	return out
}

// method is what every report says of how it was made.
func method(seeds []uint64) report.Method {
	return report.Method{
		Command: "presage-lab " + quoted(os.Args[1:]), Version: telemetry.ReadBuild().String(), Seeds: seeds,
		TTFTOff: report.SimulatorTTFT, ITLOff: report.SimulatorITL, RunHours: report.Unknown(),
	}
}

// quoted is a command line that a shell reads as it was.
func quoted(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]{}~`!#") {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// hashes are those of the scenario as it was read, and of the requests of the first seed.
func hashes(a *compare.Arena, load float64, seed uint64) []report.Hash {
	var out []report.Hash
	sum := func(of string, write func(io.Writer) error) {
		h := sha256.New()
		if write(h) == nil {
			out = append(out, report.Hash{Of: of, SHA256: hex.EncodeToString(h.Sum(nil))[:16]})
		}
	}
	sum("scenario", func(w io.Writer) error { return json.NewEncoder(w).Encode(a.Scenario) })
	sum(fmt.Sprintf("workload (load %g, seed %d)", load, seed), func(w io.Writer) error {
		src, err := a.Scenario.Source(workload.Options{Seed: seed, Load: load, Trace: a.Trace})
		if err != nil {
			return err
		}
		for range 1_000_000 {
			var j cluster.Job
			if !src.Next(&j) || a.Scenario.Duration > 0 && j.At >= a.Scenario.Duration {
				return nil
			}
			_, _ = fmt.Fprintln(w, j.At.Nanoseconds(), j.Class, j.PromptTokens, j.OutputTokens, j.Blocks)
		}
		return nil
	})
	return out
}

// tuningOf says where the weights of a policy come from; empty: nobody set them.
func tuningOf(policy string) string {
	name, knobs, set := strings.Cut(policy, ":")
	switch {
	case set:
		return "set here: " + knobs
	case slices.Contains([]string{"round-robin", "least-request", "p2c", "random", "always-busiest"}, name):
		return "no weights"
	case name == "predictive":
		return "built-in prior, the same everywhere"
	case name == "adaptive":
		return "own defaults, the same everywhere"
	case name == "weighted" || name == "llmd-weighted":
		return "llm-d-router's weights 3/2/2"
	case slices.Contains(published, name):
		return "published defaults"
	}
	return ""
}

// endpoints are the kinds of engines, as "6 H100".
func endpoints(a *compare.Arena) []string {
	cfg, err := a.Scenario.Cluster(a.Table)
	if err != nil {
		return nil
	}
	number := map[string]int{}
	var order []string
	for i := range cfg.Nodes {
		gpu := cfg.Nodes[i].Engine.Coefs.GPU
		if number[gpu] == 0 {
			order = append(order, gpu)
		}
		number[gpu]++
	}
	for i, gpu := range order {
		order[i] = fmt.Sprintf("%d %s", number[gpu], gpu)
	}
	return order
}

// orUnknown is a figure of a map.
func orUnknown(of map[string]float64, name string, scale float64) report.Value {
	v, ok := of[name]
	if !ok || math.IsNaN(v) {
		return report.Unknown()
	}
	return report.Value(scale * v)
}
