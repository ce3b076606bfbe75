package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/presage-router/presage/cmd/internal/terminal"
	"github.com/presage-router/presage/lab/ab"
	"github.com/presage-router/presage/lab/report"
)

// abView prints what logs show.
type abView struct {
	*terminal.Terminal
	r *ab.Result
}

// printAB prints the verdict first, then what it rests on.
func printAB(term *terminal.Terminal, r *ab.Result) {
	t := &abView{term, r}
	t.Result("")
	logs := fmt.Sprintf("%d logs", len(r.Files))
	if len(r.Files) == 1 {
		logs = "1 log"
	}
	t.Result("live, %s, %s, %s to %s", t.counted(), logs, r.From.Format("2006-01-02 15:04"), r.To.Format("2006-01-02 15:04 MST"))
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		t.Result("")
		t.Result("%s", t.Paint(terminal.Bold, t.plain(v.Sentence)))
		for _, s := range v.More {
			t.Result("%s", t.plain(s))
		}
		if s := t.beside(v.Arm); s != "" {
			t.Result("%s", t.plain(s))
		}
	}
	t.Result("")
	t.arms()
	t.Result("")
	t.paired()
	t.settled()
	t.Result("")
	t.Result("checks, any of which forbids a verdict")
	for _, c := range r.Checks {
		of := ""
		if c.Arm != "" && len(r.Verdicts) > 1 {
			of = c.Arm + ": "
		}
		t.Result("  %s %-18s %s%s", t.sign(c.OK, c.Known), c.Name, of, t.plain(c.About))
	}
	t.off()
	for _, f := range r.Refused {
		t.Result("refused  %s: %s", t.plain(f.What), t.plain(f.Why))
	}
	for _, n := range r.Notes {
		t.Result("note     %s", t.plain(n))
	}
}

// beside names what else is decided, and not small: the verdict is about the primary metric alone.
func (t *abView) beside(arm string) string {
	var parts []string
	for i := range t.r.Paired {
		d := &t.r.Paired[i]
		if d.A != arm || d.Metric == "slo_attainment" || d.Metric == "prompt_tokens" || !(d.CI[0] > 0 || d.CI[1] < 0) || !(max(d.Diff, -d.Diff) > 0.05*d.Base) {
			continue
		}
		unit := map[string]string{"ms": " ms", "points": " points"}[d.Unit]
		parts = append(parts, fmt.Sprintf("%s %s%s (%s %%)", strings.TrimSuffix(t.label(d), ", ms"), t.signed(d.Diff, t.places(d)), unit, t.signed(100*d.Diff/d.Base, 0)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Beside it, where the verdict does not look: " + strings.Join(parts, ", ") + "."
}

// counted is what was read, in one clause.
func (t *abView) counted() string {
	r := t.r
	length := time.Duration(r.Block * float64(time.Second))
	if r.Unit == "block" {
		return fmt.Sprintf("blocks of %s less a washout of %s, %d requests of which %d in washouts", length, time.Duration(r.Washout*float64(time.Second)), r.Requests, r.Washed)
	}
	return fmt.Sprintf("split by %s, in cells of %s, %d requests", r.Unit, length, r.Requests)
}

func (t *abView) arms() {
	r := t.r
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	cells := "BLOCKS"
	if r.Unit != "block" {
		cells = "CELLS"
	}
	fmt.Fprintln(w, "ARM\t"+cells+"\tREQUESTS\tRATE/s\tIN SLO\tTTFT mean\tp50\tp90\tp99 ms\tITL ms\tERRORS\tCACHED\t")
	for _, name := range t.names() {
		a := r.Arms[name]
		label := t.plain(name)
		if name == r.Control {
			label += " (control)"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", label, a.Blocks, a.Requests, t.figure(a.Rate, 2), t.percent(a.InSLO), t.figure(a.TTFTMean, 0),
			t.figure(a.TTFT50, 0), t.figure(a.TTFT90, 0), t.figure(a.TTFT99, 0), t.figure(a.ITL, 1), t.percent(a.Errors), t.percent(a.Cached))
	}
	_ = w.Flush()
	for _, name := range t.names() {
		if p := r.Arms[name].Policies; !slices.Equal(p, []string{name}) {
			t.Result("  %s is decided by %s", t.plain(name), t.plain(strings.Join(p, ", ")))
		}
	}
}

// names are the names of the arms, the control last.
func (t *abView) names() []string {
	r := t.r
	var names []string
	for i := range r.Verdicts {
		names = append(names, r.Verdicts[i].Arm)
	}
	return append(names, r.Control)
}

func (t *abView) paired() {
	r := t.r
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "DIFFERENCE\t\tCONTROL\tMEAN\tMAY BE READ AT ANY TIME, 95 %\tFIXED END, 95 %\tPAIRS\t")
	for i := range r.Paired {
		d := &r.Paired[i]
		if d.N == 0 {
			continue
		}
		of := ""
		if len(r.Verdicts) > 1 {
			of = t.plain(d.A)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", of, t.label(d), t.figure(d.Base, t.places(d)), t.signed(d.Diff, t.places(d)), t.bounds(d.CI, t.places(d)), t.bounds(d.Fixed, t.places(d)), d.N)
	}
	_ = w.Flush()
}

// label is a metric with its unit.
func (*abView) label(d *ab.Paired) string {
	name := map[string]string{
		"slo_attainment": "in SLO", "ttft_mean": "TTFT mean", "ttft_p90": "TTFT p90", "ttft_p99": "TTFT p99", "itl_mean": "ITL mean", "errors": "errors",
		"prompt_tokens": "prompt, not a result",
	}[d.Metric]
	unit := d.Unit
	if unit == "points" {
		unit = "%"
	}
	return name + ", " + unit
}

// places are the decimals that a metric is shown with.
func (*abView) places(d *ab.Paired) int {
	switch d.Metric {
	case "slo_attainment", "itl_mean", "errors":
		return 2
	}
	return 0
}

// printSettled says how dependent requests are, and how long it takes to know more.
func (t *abView) settled() {
	r := t.r
	for i := range r.Paired {
		d := &r.Paired[i]
		if d.Needed == nil {
			continue
		}
		of := ""
		if len(r.Verdicts) > 1 {
			of = d.A + ": "
		}
		switch e := float64(d.Effect); {
		case e > 1:
			t.Result("%sdesign effect %.1f: %.1f requests say as much as one would if all were independent", t.plain(of), e, e)
		case e >= 0:
			t.Result("%sdesign effect %.1f: pairs vary no more than independent requests would", t.plain(of), e)
		}
		if d.CI[0] > 0 || d.CI[1] < 0 || d.CI[0] > -report.Value(d.Needed.Effect) && d.CI[1] < report.Value(d.Needed.Effect) {
			continue // settled
		}
		t.Result("%s%.1f points are shown at 80 %% power by %s pairs read once at the end, or %s read at any time (%s h more); there are %d", t.plain(of), d.Needed.Effect,
			t.figure(d.Needed.Fixed, 0), t.figure(d.Needed.AnyTime, 0), t.figure(d.Needed.Hours, 1), d.N)
	}
}

func (t *abView) off() {
	r := t.r
	if len(r.Off) == 0 {
		return
	}
	t.Result("")
	t.Result("per decision, queues as they were: the TTFT of arms that explore, had the endpoint been chosen otherwise")
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ARM\tCHOICE\tMETHOD\tTTFT MEAN ms\t95 %\tDECISIONS\tEFFECTIVE\tLARGEST WEIGHT\t")
	for _, e := range r.Off {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t\n", t.plain(e.Arm), e.Target, e.Method, t.figure(e.TTFT.Mean, 1),
			t.figure(e.TTFT.Low, 1)+" to "+t.figure(e.TTFT.High, 1), e.N, t.percent(e.ESS), t.figure(e.MaxWeight, 1))
	}
	_ = w.Flush()
	t.Result("This says what a choice brought its own request. What everybody's choosing so would do to the queues, only blocks tell.")
	t.Result("")
}

func (t *abView) sign(ok, known bool) string {
	switch {
	case !known && t.UTF8:
		return "◇"
	case !known:
		return "?"
	case ok && t.UTF8:
		return t.Paint(terminal.Green, "●")
	case ok:
		return "ok"
	case t.UTF8:
		return t.Paint(terminal.Red, "✕")
	}
	return "NO"
}

// plain makes a text fit for the terminal: names come from logs, and the report's narrow spaces and
// minus signs are not in ASCII.
func (t *abView) plain(s string) string {
	s = strings.NewReplacer("\u202f", " ", "\u2009", " ", "\u00a0", " ").Replace(s)
	if !t.UTF8 {
		s = strings.NewReplacer("−", "-", "±", "+-").Replace(s)
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// figure is a number, or a dash where it is not known.
func (*abView) figure(v report.Value, places int) string {
	if !v.Known() {
		return "-"
	}
	return fmt.Sprintf("%.*f", places, float64(v))
}

func (*abView) signed(v report.Value, places int) string {
	if !v.Known() {
		return "-"
	}
	return fmt.Sprintf("%+.*f", places, float64(v))
}

func (*abView) percent(v report.Value) string {
	if !v.Known() {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(v))
}

func (t *abView) bounds(v [2]report.Value, places int) string {
	if !v[0].Known() || !v[1].Known() {
		return "none yet"
	}
	return t.signed(v[0], places) + " to " + t.signed(v[1], places)
}
